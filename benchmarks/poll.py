"""The CPU time of one poll (read, map, verify, ledger) beside that of prometheus-client's text parser alone.

Both read the same pages in the same run, in turn. Fetching and the commit to disk are left out; the commit is shown.
"""

from __future__ import annotations

import logging
import statistics
import time
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.figure import Figure
from benchmarks.pages import TEXT, VERSION, Made, page, sized
from prefix_cache_exporter.config.model import EngineSource
from prefix_cache_exporter.engine.fetch import Fetched
from prefix_cache_exporter.engine.maps import load_maps
from prefix_cache_exporter.engine.poller import EnginePoller
from prefix_cache_exporter.labels import Limits
from prefix_cache_exporter.recorder import Recorder
from prefix_cache_exporter.release import Releases, from_mapping
from prefix_cache_exporter.state import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SHARE = 0.25
"""Of the text parser's time on the page of 240 kB and 2,000 samples."""
LINEAR = 1.5
"""Time for each byte of the nine times larger page, in those of the small one; caches of the processor cost a part."""
_SAMPLES = 2_000
_PAGES = 8
_ROUNDS = 15


class Replay:
    """A server that gives pages in turn."""

    def __init__(self, pages: list[Made]) -> None:
        self._bodies = [made.body for made in pages]
        self._next = 0

    def fetch(self) -> Fetched:
        body = self._bodies[self._next % len(self._bodies)]
        self._next += 1
        return Fetched(body, TEXT)

    def version(self) -> str:
        return VERSION

    def close(self) -> None:
        """Nothing to let go of."""


class Standing:
    """One release in force for ever."""

    def __init__(self) -> None:
        self._releases = from_mapping({"template": "support", "template_revision": "r42"}, "benchmark")

    def look(self) -> Releases:
        return self._releases


def rig(pages: list[Made], state: Path | None = None) -> tuple[EnginePoller, Recorder]:
    """A poller over these pages, and the recorder it moves."""
    recorder = Recorder(Store(state), Limits(), hold_seconds=0)
    source = EngineSource(name="vllm", url="http://127.0.0.1:1")
    return EnginePoller(source, recorder, Standing(), load_maps(), fetcher=Replay(pages)), recorder


def figures(*, quick: bool) -> Iterator[Figure]:
    """Polls the page of 2,000 samples and the one of 2 MB."""
    quiet()
    rounds = 1 if quick else _ROUNDS
    small = [sized(100 if quick else _SAMPLES, step) for step in range(_PAGES)]
    large = [page(2 if quick else 16, 1 if quick else 3, step) for step in range(_PAGES)]
    share, seconds, commit = _compare(small, rounds)
    for made, unit in ((small[0], "small"), (large[0], "large")):
        yield Figure("poll", f"{unit} page", len(made.body) / 1e3, "kB")
        yield Figure("poll", f"{unit} page", made.samples, "samples")
    yield Figure("poll", "one poll, small page", 1e3 * seconds, "ms CPU")
    yield Figure("poll", "text parser alone, small page", 1e3 * seconds / share, "ms CPU")
    yield Figure("poll", "one poll / text parser, small page", share, "of its CPU", SHARE)
    yield Figure("poll", "commit of what one poll moved", 1e3 * commit, "ms CPU")
    share, large_seconds, _ = _compare(large, max(1, rounds // 3))
    yield Figure("poll", "one poll, large page", 1e3 * large_seconds, "ms CPU")
    yield Figure("poll", "one poll / text parser, large page", share, "of its CPU", SHARE)
    growth = (large_seconds / len(large[0].body)) / (seconds / len(small[0].body))
    yield Figure("poll", "time per byte, large / small page", growth, "times", LINEAR)
    first = cpu_seconds(rig(small)[0].poll)
    yield Figure("poll", "the first poll, small page", 1e3 * first, "ms CPU")


def _compare(pages: list[Made], rounds: int) -> tuple[float, float, float]:
    """A poll's share of the parser's time, a poll's seconds, and a commit's; medians of rounds."""
    poller, recorder = rig(pages)
    poller.poll()
    recorder.commit()
    text = pages[0].body.decode()
    parser, polls, commits = [], [], []
    for _ in range(rounds):
        parser.append(cpu_seconds(lambda: list(text_string_to_metric_families(text))))
        polls.append(cpu_seconds(poller.poll))
        commits.append(cpu_seconds(recorder.commit))
    seconds = statistics.median(polls)
    return seconds / statistics.median(parser), seconds, statistics.median(commits)


def quiet() -> None:
    """Keeps the program's log out of the figures."""
    logging.getLogger("prefix_cache_exporter").setLevel(logging.CRITICAL)


def cpu_seconds(work: Callable[[], object]) -> float:
    """The CPU time of all threads while `work` runs."""
    began = time.process_time()
    work()
    return time.process_time() - began
