"""What releases of vLLM do differently with the same requests, as data."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any, Self

from prefix_cache_exporter.documents import parse_yaml


class UnknownVersionError(ValueError):
    """A version that the simulator has no facts about.

    Attributes:
        version: what was asked for.
    """

    def __init__(self, version: str) -> None:
        self.version = version
        oldest, newest = known_range()
        super().__init__(f"engine version: got {version}, expected a release from {oldest} to {newest}")


@dataclass(frozen=True, slots=True)
class Rules:
    """How one release behaves; `rules.yaml` says since when and where that can be read.

    Attributes:
        lookups_counted: `admission` once a request gets its blocks, `lookup` each time they are looked for.
        unhashed_first: blocks freed without a hash are reused at once.
        whole_prompt_must_fit: a request is admitted only where its whole prompt finds room, chunked or not.
        cached_measure: the count that stands for cached prompt tokens: `first_token` or `lookup_hits`.
        zero_cached_reported: `usage` says 0 where nothing was cached, instead of leaving the details out.
        created_reported: `usage` says how many tokens were written to the cache.
    """

    lookups_counted: str
    unhashed_first: bool
    whole_prompt_must_fit: bool
    cached_measure: str
    zero_cached_reported: bool
    created_reported: bool

    @classmethod
    def of(cls, version: str) -> Self:
        """The rules of a release.

        Raises:
            UnknownVersionError: older or newer than the facts.
        """
        release = parse_version(version)
        rules: dict[str, Any] = {}
        for fact in _facts()["rules"]:
            if parse_version(fact["since"]) <= release:
                rules[fact["rule"]] = fact["value"]
        return cls(**{field.name: rules[field.name] for field in fields(cls)})


def parse_version(version: str) -> tuple[int, ...]:
    """A release as numbers that compare.

    Raises:
        UnknownVersionError: older or newer than the facts, or no release at all.
    """
    numbers = _numbers(version)
    oldest, newest = map(_numbers, known_range())
    if not numbers or not oldest <= numbers <= newest:
        raise UnknownVersionError(version)
    return numbers


def known_range() -> tuple[str, str]:
    """The oldest and the newest release that the simulator knows."""
    known = _facts()["known"]
    return known["oldest"], known["newest"]


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.split(".")
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else ()


@cache
def _facts() -> dict[str, Any]:
    file = resources.files(__package__) / "rules.yaml"
    facts: dict[str, Any] = parse_yaml(file.read_bytes(), "rules.yaml")
    return facts
