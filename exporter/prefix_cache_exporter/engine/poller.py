"""The worker of one engine: fetch, read, map, verify, and move the ledger by what was counted since the last poll."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Protocol

import msgspec

from prefix_cache_exporter.logs import RateLimit, fields
from prefix_cache_exporter.recorder import Change
from prefix_cache_exporter.release import Release, Releases, credited

from .credit import Ledgering
from .deltas import deltas
from .evaluate import Evaluator
from .fetch import Fetcher, FetchError
from .gains import NOT_NEW
from .identity import EngineVersion, VersionMismatchError
from .levels import Levels
from .maps import families_of
from .page import PageError, PageReader
from .plan import UnknownChoiceError, select_plan
from .reading import Reading, unknown_reading
from .snapshot import Snapshot, SnapshotError
from .versions import parse_version

if TYPE_CHECKING:
    from collections.abc import Callable

    from prefix_cache_exporter.config.model import EngineSource
    from prefix_cache_exporter.recorder import Recorder

    from .delta import Delta
    from .fetch import Fetched
    from .identity import Source
    from .maps import MapSet
    from .records import VersionMap

_log = logging.getLogger(__name__)

CURSOR = "engine"
"""Kind of this worker's durable positions; the name is the source's."""
NOT_THERE = "refused"
"""The failure that, while draining, says that the engine is gone and there will be nothing more to count."""
_DRAIN_SECONDS = 1.0
"""While draining the engine may go at any moment: the last poll should not be long before."""


class Looks(Protocol):
    """Says which release is in force now."""

    def look(self) -> Releases:
        """The releases of now."""


class EnginePoller:
    """Polls one engine; for one thread.

    Args:
        source: where and how.
        recorder: takes what is counted.
        releases: say which release is in force.
        maps: all metric maps.
        fetcher: asks the server.
        clock: seconds since 1970.
        monotonic: seconds that never go back.
    """

    def __init__(
        self,
        source: EngineSource,
        recorder: Recorder,
        releases: Looks,
        maps: MapSet,
        *,
        fetcher: Source | None = None,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source, self._recorder, self._releases, self._maps = source, recorder, releases, maps
        self._fetcher: Source = fetcher or Fetcher(source)
        self._clock, self._monotonic = clock, monotonic
        self._version = EngineVersion(source.engine_version, self._fetcher.version, monotonic, means=self._means)
        self._ledgering = Ledgering(source.name, source.provider, source.models)
        self._levels = Levels(source, recorder)
        self._evaluator = Evaluator()
        self._reader: tuple[str, PageReader] | None = None
        self._memory = _Memory.load(recorder.cursors(CURSOR).get(source.name))
        self._began, self._was_away = clock(), False
        self._away = False
        self._last_success: float | None = None
        self._complaints = RateLimit(clock=monotonic)
        self._troubled = False
        self.caught_up = False
        recorder.apply(self._ledgering.begin())

    def step(self, *, draining: bool) -> float | None:
        """One poll. While draining, the end has come when the engine is no longer there."""
        failure = self.poll()
        self.caught_up = True
        if not draining:
            return self._source.poll_seconds
        return None if failure == NOT_THERE else min(self._source.poll_seconds, _DRAIN_SECONDS)

    def close(self) -> None:
        """Lets go of connections."""
        self._fetcher.close()

    def poll(self) -> str | None:
        """Polls once. Returns why there was no page, or None."""
        began = self._monotonic()
        release = self._releases.look().in_force
        change = Change()
        self._ledgering.count_poll(change)
        failure: tuple[str, str] | None = None
        try:
            fetched = self._fetcher.fetch()
            reading, delta, snapshot = self._interpret(fetched)
        except (FetchError, PageError) as error:
            failure = error.reason, error.detail
            self._fail(change, *failure)
        else:
            self._succeed(change, release, reading, delta, snapshot)
        self._recorder.apply(change)
        self._levels.set_up(failure is None, self._monotonic() - began)
        return failure[0] if failure else None

    def _fail(self, change: Change, reason: str, detail: str) -> None:
        self._ledgering.count_failure(change, reason)
        self._version.doubt()
        self._away = self._away or reason == NOT_THERE
        self._was_away = self._was_away or self._away
        self._complain(f"failed {reason}", "poll failed", reason=reason, detail=detail)
        now = self._monotonic()
        if self._last_success is not None and now - self._last_success > self._source.stale_seconds:
            self._levels.withdraw()

    def _succeed(
        self, change: Change, release: Release, reading: Reading, delta: Delta, snapshot: Snapshot | None
    ) -> None:
        self._last_success = self._monotonic()
        if reading.state == "mismatch":
            self._ledgering.count_mismatches(change, reading.reasons)
        labels = credited(self._memory.release or release, release)
        self._ledgering.credit(change, delta, labels)
        if reading.usable and snapshot is not self._memory.snapshot:
            self._away = False
            # What is counted later belongs to the releases of both intervals.
            both = Release(labels["template"], labels["template_revision"])
            memory = _Memory(snapshot, both if snapshot and snapshot.pending else release)
            if memory != self._memory:
                self._memory = memory
                change.cursor(CURSOR, self._source.name, memory.encode())
        if reading.state in {"mismatch", "unknown"}:
            why, version = "; ".join(reading.reasons), self._version.last or "not told"
            details = {"state": reading.state, "version": version, "why": why}
            self._complain(f"state {reading.state}", "page not as its map says", **details)
        elif self._troubled:
            self._troubled = False
            self._say(logging.INFO, "recovered", "polling again")
        self._levels.set_last_success(self._clock())
        self._levels.publish(reading, delta, self._last_success)

    def _complain(self, kind: str, message: str, **details: object) -> None:
        """One line a minute for each kind of trouble, however often it comes and goes."""
        self._troubled = True
        self._say(logging.WARNING, kind, message, **details)

    def _say(self, level: int, kind: str, message: str, **details: object) -> None:
        held_back = self._complaints.passes(kind)
        if held_back is not None:
            _log.log(level, message, extra=fields(source=self._source.name, **details, held_back=held_back))

    def _interpret(self, fetched: Fetched) -> tuple[Reading, Delta, Snapshot | None]:
        reading, delta, snapshot = self._evaluate(fetched)
        replaced = delta.restarts or NOT_NEW in delta.anomalies
        if (replaced or reading.contradicted) and not self._version.just_asked:
            self._version.doubt()  # another version may have come without a failed poll in between
            reading, delta, snapshot = self._evaluate(fetched)
        return reading, delta, snapshot

    def _evaluate(self, fetched: Fetched) -> tuple[Reading, Delta, Snapshot | None]:
        reading = self._read(fetched)
        previous = self._memory.snapshot
        if previous is None and self._started_under_our_eyes(reading):
            previous = Snapshot.zero()
        delta, snapshot = deltas(previous, reading, away=self._away)
        return reading, delta, snapshot

    def _read(self, fetched: Fetched) -> Reading:
        try:
            version = self._version.current()
        except VersionMismatchError as error:
            self._complain("version", "versions differ", pinned=error.pinned, answered=error.answered)
            return unknown_reading("version_mismatch")
        found = self._maps.resolve(version)
        if found is None:
            # The body must be a page all the same: an error page of a proxy is not up.
            PageReader((), created=False).read(fetched.body, fetched.content_type)
            return unknown_reading("unknown_version")
        page = self._reader_of(found).read(fetched.body, fetched.content_type)
        try:
            plan = select_plan(found, page, style=self._source.name_style)
        except UnknownChoiceError:
            return unknown_reading("unknown_name_style")
        return self._evaluator.read(plan, page)

    def _means(self, answer: str) -> bool:
        version = parse_version(answer)
        return version is not None and (not version.unfinished or self._maps.resolve(answer) is not None)

    def _reader_of(self, version: VersionMap) -> PageReader:
        if self._reader is None or self._reader[0] != version.version:
            native = version.styles[0]
            wanted = {name for d in version.dialects for s in version.styles for name in families_of(d, s, native)}
            self._reader = version.version, PageReader(wanted)
        return self._reader[1]

    def _started_under_our_eyes(self, reading: Reading) -> bool:
        """Whether the engine was away when we began and started since: then all it has counted is new.

        Both is asked for, since a clock alone may be wrong and an absence alone may have been ours.
        """
        if not self._was_away:
            return False
        moments = [moment for group in reading.created.values() for moment in group.values()]
        if reading.started is not None:
            moments.append(reading.started)
        return bool(moments) and min(moments) >= self._began


class _Memory:
    """What is remembered from poll to poll, also over a restart of the exporter: the last reading and its release."""

    __slots__ = ("release", "snapshot")

    def __init__(self, snapshot: Snapshot | None = None, release: Release | None = None) -> None:
        self.snapshot, self.release = snapshot, release

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Memory)
            and self.snapshot == other.snapshot
            and (self.release and self.release.labels) == (other.release and other.release.labels)
        )

    __hash__ = None  # type: ignore[assignment]  # mutable content

    def encode(self) -> bytes:
        """The memory as JSON."""
        snapshot = b"null" if self.snapshot is None else self.snapshot.encode()
        release = None if self.release is None else self.release.labels
        return msgspec.json.encode({"release": release, "snapshot": msgspec.Raw(snapshot)})

    @classmethod
    def load(cls, payload: bytes | None) -> _Memory:
        """The memory that was stored; an empty one where it is of another format: counting then begins anew."""
        if payload is None:
            return cls()
        try:
            stored = msgspec.json.decode(payload, type=_Stored)
            snapshot = Snapshot.decode(bytes(stored.snapshot))
        except (msgspec.DecodeError, SnapshotError):
            _log.warning("a stored position cannot be read; counting goes on from the next page")
            return cls()
        labels = stored.release
        release = None if labels is None else Release(labels.template, labels.template_revision)
        return cls(snapshot, release)


class _Labels(msgspec.Struct):
    template: str
    template_revision: str


class _Stored(msgspec.Struct):
    release: _Labels | None
    snapshot: msgspec.Raw
