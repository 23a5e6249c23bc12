"""What a source looks like at this moment, as gauges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.measures import USAGE

if TYPE_CHECKING:
    from prefix_cache_exporter.recorder import Recorder

    from .follow import Follower
    from .sketch import Window
    from .tally import Tally
    from .uptake import Uptake

_LABELS = ("provider", "model", "template", "template_revision")


def publish(source: str, recorder: Recorder, follower: Follower, uptake: Uptake) -> None:
    """Sets the gauges of a source's logs and open records; what is not known is not set."""
    levels = {
        "open_records": uptake.open_records,
        "log_files": follower.files,
        "log_unread_bytes": follower.unread_bytes,
        "log_readable": follower.readable,
        "log_last_record_timestamp_seconds": uptake.last_record,
    }
    for family, level in levels.items():
        if level is not None:
            recorder.set_gauge(USAGE[family], {"source": source}, float(level))


def take_fingerprints(source: str, recorder: Recorder, window: Window, tally: Tally, now: float) -> None:
    """Takes the leading fingerprints of records into the window, once the recorder has their counters.

    Under the labels that those have: of revisions beyond a bound, which are one series, they are counted as one's.
    """
    for (key, value), requests in tally.fingerprints.items():
        labels = {"source": source, **dict(zip(_LABELS, key, strict=True))}
        bounded = recorder.bounded(USAGE["leading_fingerprints"], labels)
        window.add(tuple([bounded[name] for name in _LABELS]), value, now, requests)


def publish_fingerprints(source: str, recorder: Recorder, window: Window, now: float) -> None:
    """Sets the gauges of leading fingerprints in the window that ends now, in seconds since 1970."""
    found = [
        (dict(zip(_LABELS, key, strict=True)), float(distinct), float(requests))
        for key, distinct, requests in window.levels(now)
    ]
    families = USAGE["leading_fingerprints"], USAGE["leading_fingerprint_requests"]
    scope = {"source": source}
    recorder.replace_gauges(families[0], scope, [(labels, distinct) for labels, distinct, _ in found])
    recorder.replace_gauges(families[1], scope, [(labels, requests) for labels, _, requests in found])
