"""What `pack` writes: a list of producers, each with a folder of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .kubernetes import manifest_files
from .rules import rule_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .settings import Settings


@dataclass(frozen=True, slots=True)
class Producer:
    """Makes the generated files of one folder.

    Attributes:
        folder: the folder below the output directory.
        make: file names and their content for given settings; must not depend on anything else.
        kept: names in that folder that people write, and that are left alone.
    """

    folder: str
    make: Callable[[Settings], Mapping[str, str]]
    kept: frozenset[str] = frozenset()


def _dashboards(settings: Settings) -> Mapping[str, str]:
    # Dashboards alone need grafanalib, which is not installed with the sidecar.
    from .dashboards.files import dashboard_files  # noqa: PLC0415  # see above

    return dashboard_files(settings)


_WRITTEN_MANIFESTS = frozenset({
    "config.yaml", "kustomization.yaml", "networkpolicy.yaml", "podmonitor.yaml", "release.yaml", "vllm.yaml",
})  # fmt: skip

PRODUCERS: tuple[Producer, ...] = (
    Producer("alerts", rule_files, frozenset({"README.md", "alertmanager.example.yml", "runbooks", "tests"})),
    Producer("dashboards", _dashboards, frozenset({"README.md", "kustomization.yaml", "preview"})),
    Producer("deploy/manifests", manifest_files, _WRITTEN_MANIFESTS),
)
