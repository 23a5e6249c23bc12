"""What `pack` writes: a list of producers, each with a folder of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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


PRODUCERS: tuple[Producer, ...] = (
    Producer("alerts", rule_files, frozenset({"README.md", "alertmanager.example.yml", "runbooks", "tests"})),
)
