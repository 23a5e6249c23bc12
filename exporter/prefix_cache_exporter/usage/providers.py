"""Providers by the many names that records, gateways and telemetry give them."""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from prefix_cache_exporter.documents import DocumentError, data_root, load_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping


class Providers(msgspec.Struct, frozen=True):
    """What is known of providers as such.

    Attributes:
        by_name: canonical name by every other name, in lower case.
        serves: for a provider, those whose models it also serves on the same terms.
        reuse: for a provider, its reuse rules as they stand in the file.
    """

    by_name: Mapping[str, str]
    serves: Mapping[str, tuple[str, ...]]
    reuse: Mapping[str, tuple[Mapping[str, Any], ...]]

    def canonical(self, name: str) -> str:
        """The canonical name, or the name itself in lower case where it is nobody's."""
        lowered = name.strip().lower()
        return self.by_name.get(lowered, lowered)

    def with_served(self, name: str) -> tuple[str, ...]:
        """A provider and those whose models it serves, in the order in which they are asked."""
        canonical = self.canonical(name)
        return (canonical, *self.serves.get(canonical, ()))


@cache
def shipped_providers() -> Providers:
    """The providers of `metric_maps/providers.yaml`, which tests hold to its schema.

    Raises:
        DocumentError: where the file gives one name to two providers.
    """
    path = data_root() / "providers.yaml"
    document = load_yaml(path)
    return parse_providers(document["providers"], str(path))


def parse_providers(document: Mapping[str, Any], file: str) -> Providers:
    """Turns the validated `providers` mapping of a file into what lookups need.

    Raises:
        DocumentError: where one name belongs to two providers.
    """
    by_name: dict[str, str] = {}
    for provider, facts in document.items():
        for name in dict.fromkeys((provider, *facts["names"])):
            if by_name.setdefault(name.lower(), provider) != provider:
                expected = f"a name that is not also {by_name[name.lower()]}'s"
                raise DocumentError(file, f"providers.{provider}.names", name, expected)
    return Providers(
        MappingProxyType(by_name),
        MappingProxyType({name: tuple(facts.get("serves", ())) for name, facts in document.items()}),
        MappingProxyType({name: tuple(facts.get("reuse", ())) for name, facts in document.items()}),
    )
