"""The demo's voice: chapters, ratios with both sides, and alerts as they change."""

from __future__ import annotations

import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import requests

from prefix_cache_exporter.labels import MIXED
from prefix_cache_exporter.pack.alerts import exporter_absent
from prefix_cache_exporter.serve.ending import Event

from .alerts import AlertWatch, parse_alerts
from .plot import CHAPTERS
from .prompts import SEARCH_R7, SUPPORT_R41
from .readings import legend, readings, revisions, totals
from .stage import Stage
from .workspace import sources

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .alerts import Alert
    from .plot import Chapter
    from .readings import Totals

_LOOK_SECONDS = 0.5
_LINE_SECONDS = 5.0
_TIMEOUT_SECONDS = 10.0
_RELEASED, _UNTOUCHED = SUPPORT_R41.template, SEARCH_R7.template


def tell(
    seconds: float | None = None,
    chapters: Sequence[Chapter] | None = None,
    out: TextIO | None = None,
    *,
    programs: bool = True,
) -> None:
    """Puts everything on stage and tells the story, then stays open until SIGINT or SIGTERM.

    Args:
        seconds: how long everything stays open after the story; None for no end.
        chapters: the story; the whole one where nothing is given.
        out: where lines go; standard output where nothing is given.
        programs: whether Prometheus and Alertmanager run too, where they are installed.

    Raises:
        OSError: where something cannot be started.
    """
    chapters = CHAPTERS if chapters is None else chapters
    began = time.monotonic()
    say = partial(print, file=out or sys.stdout, flush=True)

    def note(text: str) -> None:
        past = int(time.monotonic() - began)
        say(f"{past // 60:2d}:{past % 60:02d}  {text}")

    with (
        tempfile.TemporaryDirectory(prefix="prefix-cache-demo-") as folder,
        Stage(Path(folder), note, programs=programs) as stage,
    ):
        stage.sidecar.signals.install()
        say(_introduction(stage))
        narrator = Narrator(stage, note)
        for number, chapter in enumerate(chapters, 1):
            say(f"\nChapter {number}: {chapter.title}.\n{chapter.look}\n")
            if number > 1:
                stage.release(chapter.revision)
            if not narrator.watch(chapter):
                return
        ends = "" if seconds is None else f" for {seconds:g} s"
        say(f"\nThe end. {stage.exporter} stays open{ends}; Ctrl-C ends it.\n")
        if seconds is not None:
            narrator.end = time.monotonic() + seconds
        while narrator.watch(chapters[-1]):
            pass


class Narrator:
    """Looks at what is on stage and says what it sees.

    Args:
        stage: what is looked at.
        note: takes lines.

    Attributes:
        end: when to stop on the monotonic clock; None for no end.
    """

    def __init__(self, stage: Stage, note: Callable[[str], None]) -> None:
        self._stage, self._note = stage, note
        self.end: float | None = None
        self._alerts = AlertWatch()
        self._scraped = False
        self._told: Totals | None = None

    def watch(self, chapter: Chapter) -> bool:
        """Watches for a chapter's length. Returns whether the demo goes on after it."""
        first = self._totals()
        self._told = first if self._told is None else self._told
        now = time.monotonic()
        until, line = now + chapter.seconds, now + _LINE_SECONDS
        while (now := time.monotonic()) < until:
            if self.end is not None and now >= self.end:
                return False
            if self._stage.sidecar.signals.wait(_LOOK_SECONDS) is Event.END:
                return False
            for change in self._alert_changes():
                self._note(change)
            if time.monotonic() >= line:
                line += _LINE_SECONDS
                before, self._told = self._told, self._totals()
                self._speak(chapter.revision.name, before, self._told)
        for whole in readings(first, self._totals(), sources(_UNTOUCHED))[:1]:
            self._note(f"{_UNTOUCHED} {SEARCH_R7.name}, untouched, over the whole chapter: {whole}")
        return True

    def _speak(self, in_force: str, before: Totals, after: Totals) -> None:
        """Says each ratio under the revision whose tokens it counts: a release is not in force for what came before."""
        found = revisions(before, after, sources(_RELEASED))
        if in_force not in found:
            self._note(f"{_RELEASED} {in_force:<5}  nothing counted yet")
        for revision in sorted(found, key=lambda name: (name == in_force, name == MIXED)):
            for reading in readings(before, after, sources(_RELEASED), revision):
                self._note(f"{_RELEASED} {revision:<5}  {reading}")

    def _totals(self) -> Totals:
        return totals(requests.get(f"{self._stage.exporter}/metrics", timeout=_TIMEOUT_SECONDS).text)

    def _alert_changes(self) -> list[str]:
        if self._stage.prometheus is None:
            return []
        try:
            answer = requests.get(f"{self._stage.prometheus}/api/v1/alerts", timeout=_TIMEOUT_SECONDS)
            answer.raise_for_status()
        except requests.RequestException:
            return []  # still starting, or ending: the next look tells
        return self._alerts.look(self._worth_telling(parse_alerts(answer.text)))

    def _worth_telling(self, alerts: list[Alert]) -> list[Alert]:
        """Nobody is missed who has not been seen yet: until the first scrape, that exporters are absent is no news."""
        if not self._scraped:
            absent = [alert for alert in alerts if alert.name == exporter_absent.NAME]
            alerts = [alert for alert in alerts if alert.name != exporter_absent.NAME or alert.state == "firing"]
            self._scraped = not absent and self._has_scraped()
        return alerts

    def _has_scraped(self) -> bool:
        answer = requests.get(f"{self._stage.prometheus}/api/v1/targets", timeout=_TIMEOUT_SECONDS)
        return any(target["health"] == "up" for target in answer.json()["data"]["activeTargets"])


def _introduction(stage: Stage) -> str:
    """Where to look, and what the ratios are ratios of."""
    lines = [
        "Two simulated vLLM servers, one per template: support (0.32.0) and search (0.28.0). Each tenant's prefixes",
        "are salted with its name. Ratios are of what was counted since the line before; both sides stand beside them.",
        "What an engine counted between two polls that straddle a release is of nobody in particular: mixed.",
        "",
        f"status page     {stage.exporter}/",
        f"metrics         {stage.exporter}/metrics",
    ]
    if stage.prometheus is None:
        lines.append("Prometheus is not installed, so nothing is alerted on: apt-get install prometheus")
    else:
        lines.append(f"Prometheus      {stage.prometheus}/alerts")
        lines.append(
            f"Alertmanager    {stage.alertmanager}/"
            if stage.alertmanager
            else "Alertmanager is not installed, so nobody is paged: apt-get install prometheus-alertmanager"
        )
    lines += ["", *legend()]
    return "\n".join(lines)
