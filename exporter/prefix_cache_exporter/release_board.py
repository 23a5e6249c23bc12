"""What the page says about releases: their pins, first traffic, cold window and prediction.

A release file speaks of now; the page must still describe a revision that was replaced an hour ago and is draining. So
what was once declared is kept in durable state, by source, template and revision.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from . import measures
from .recorder import Change
from .release import Release

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .recorder import Recorder
    from .release import Releases

_KIND = "release"
_FAMILIES = measures.EXPORTER
_PINS = ("tokenizer_revision", "model_revision", "release_fingerprint", "leading_fingerprint", "predecessor_revision")


class ReleaseBoard:
    """Remembers declared releases and publishes the release gauges for those that have traffic."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._declared: dict[tuple[str, str, str], Release] = {}
        self._said: dict[str, dict[str, tuple[Release, bool | None]]] = {}
        for name, payload in recorder.cursors(_KIND).items():
            source, template, revision = json.loads(name)
            self._declared[source, template, revision] = Release(**json.loads(payload))

    def declare(self, source: str, releases: Releases, *, plane: str = "", valid: bool | None = None) -> None:
        """Takes over what a source's release file or configuration says now.

        An engine and a log of one name are one source with two planes, each of which may say its own.
        `valid` is whether its release file could be read; None where it has none.
        """
        change = Change()
        for (template, revision), release in (releases.known or {}).items():
            if self._declared.get((source, template, revision)) != release:
                self._declared[source, template, revision] = release
                name = json.dumps([source, template, revision])
                change.cursor(_KIND, name, json.dumps(asdict(release)).encode())
        self._recorder.apply(change)
        said = self._said.setdefault(source, {})
        said[plane] = (releases.in_force, valid)
        in_force = {release for release, _ in said.values() if release.names_it}
        labels = [(release.labels, 1.0) for release in in_force]
        self._recorder.replace_gauges(_FAMILIES["release_in_force"], {"source": source}, labels)
        files = [readable for _, readable in said.values() if readable is not None]
        if files:
            self._recorder.set_gauge(_FAMILIES["release_file_valid"], {"source": source}, float(all(files)))

    def publish(self) -> None:
        """Sets the gauges of every release that has had traffic and is not withdrawn."""
        rows: dict[str, list[tuple[Mapping[str, str], float]]] = {
            "release_info": [],
            "release_first_traffic_timestamp_seconds": [],
            "release_cold_window_seconds": [],
            "release_predicted_population_hit_ratio": [],
        }
        for values, seen in self._recorder.releases():
            source, provider, model, template, revision = values
            labels = {
                "source": source,
                "provider": provider,
                "model": model,
                "template": template,
                "template_revision": revision,
            }
            if seen.first_traffic is not None:
                rows["release_first_traffic_timestamp_seconds"].append((labels, seen.first_traffic))
            release = self._declared.get((source, template, revision))
            if release is None:
                continue
            rows["release_info"].append(({**labels, **{pin: getattr(release, pin) for pin in _PINS}}, 1.0))
            if release.cold_window_seconds is not None:
                rows["release_cold_window_seconds"].append((labels, release.cold_window_seconds))
            if release.predicted_population_hit_ratio is not None:
                predicted = release.predicted_population_hit_ratio
                rows["release_predicted_population_hit_ratio"].append((labels, predicted))
        for family, found in rows.items():
            self._recorder.replace_gauges(_FAMILIES[family], {}, found)
