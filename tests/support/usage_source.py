"""One usage source over a folder: configuration, state file and worker, which can be killed and started anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter import measures
from prefix_cache_exporter.config.model import UsageSource
from prefix_cache_exporter.labels import Limits
from prefix_cache_exporter.recorder import Recorder
from prefix_cache_exporter.release import Release
from prefix_cache_exporter.state import Store
from prefix_cache_exporter.usage.key_file import read_key
from prefix_cache_exporter.usage.maps.book import MapBook
from prefix_cache_exporter.usage.prices.book import PriceBook
from prefix_cache_exporter.usage.sources import build_ingest

if TYPE_CHECKING:
    from pathlib import Path

MAPS = MapBook()
PRICES = PriceBook()


class Source:
    """A source called `gw`; `path` is its log, `total(family, **labels)` sums what the page shows."""

    def __init__(self, folder: Path, text: str | bytes = "", *, hold: float = 0, limits=None, maps=MAPS, **options):
        self.folder = folder
        self.path = folder / "app.log"
        if text:
            self.append(text)
        self.options = {"name": "gw", "format": "openai.chat", "paths": (str(self.path),), **options}
        self.inventory, self.maps, self.find = None, maps, maps.get
        self.hold, self.limits = hold, limits or Limits()
        self.release = Release()
        self.now = 1_772_452_800.0  # 2026-03-02T12:00:00Z
        self.set_by = 0.0  # how far the clock has been set from there
        self.start()

    def start(self) -> None:
        self.recorder = Recorder(
            Store(self.folder / "state.db"),
            self.limits,
            hold_seconds=self.hold,
            expire_seconds=3600,
            clock=lambda: self.now + self.set_by,
        )
        source = UsageSource(**self.options)
        self.ingest = build_ingest(
            source,
            usage_map=self.maps.get(source.format),
            key=read_key(source.namespaces.key_file) if source.namespaces.key_file else b"",
            recorder=self.recorder,
            release=lambda: self.release,
            prices=PRICES,
            inventory=self.inventory,
            find=self.find,
            clock=lambda: self.now + self.set_by,
            monotonic=lambda: self.now,
        )

    def kill(self, *, committed: bool = True) -> None:
        """Ends the process, with or without a last commit, and begins a new one."""
        self.ingest.close()
        if committed:
            self.recorder.commit()
        self.recorder._store.close()
        self.start()

    def poll(self, seconds: float = 1.0) -> int:
        self.now += seconds
        lines = self.ingest.poll()
        self.recorder.commit()
        return lines

    def append(self, text: str | bytes) -> None:
        with self.path.open("ab") as file:
            file.write(text.encode() if isinstance(text, str) else text)

    def series(self, name: str) -> dict[tuple[str, ...], float]:
        """One family's series by label values, the source's name left out."""
        family = measures.USAGE[name]
        return {
            tuple(value for label, value in zip(family.labels, one.values, strict=True) if label != "source"): (
                one.parts.get("", one.parts.get("+Inf"))
            )
            for one in self.recorder.exposed()
            if one.family is family
        }

    def total(self, name: str, **labels: str) -> float | None:
        """The sum of a family's series with these labels; None where there is none."""
        family = measures.USAGE[name]
        found = [
            one.parts.get("", one.parts.get("+Inf"))
            for one in self.recorder.exposed()
            if one.family is family
            and all(one.values[family.labels.index(label)] == value for label, value in labels.items())
        ]
        return sum(found) if found else None
