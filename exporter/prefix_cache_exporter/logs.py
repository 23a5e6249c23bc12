"""Logging to standard error as Prometheus's programs do it: logfmt or JSON, one line per event.

Modules log with the standard library; `fields(...)` adds key-value pairs. Nothing logged here may hold a secret, prompt
text or a raw tenant: callers log names, paths and reasons.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

LEVELS = ("debug", "info", "warn", "error")
FORMATS = ("logfmt", "json")
Format = Literal["logfmt", "json"]

_ROOT = "prefix_cache_exporter"
_BARE = re.compile(r"[^\s\"=\\\x00-\x1f\x7f]+")
_USERINFO = re.compile(r"(?<=://)[^/?#\s@]+@")


def fields(**values: Any) -> dict[str, dict[str, Any]]:
    """Key-value pairs of one line: `log.warning("poll failed", extra=fields(source="vllm"))`."""
    return {"fields": values}


def without_credentials(text: str) -> str:
    """Text with the user and password of any address in it masked."""
    return _USERINFO.sub("<masked>@", text)


def setup(level: str = "info", form: str = "logfmt", stream: TextIO | None = None) -> None:
    """Sends the package's log to a stream, standard error by default, at a level, in a format."""
    handler = logging.StreamHandler(stream if stream is not None else sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Logfmt())
    logger = logging.getLogger(_ROOT)
    logger.handlers[:] = [handler]
    logger.propagate = False
    logger.setLevel({"warn": "WARNING"}.get(level, level.upper()))


class RateLimit:
    """Lets one event per key and period through and counts what it held back.

    Args:
        seconds: the period.
        clock: monotonic seconds.
    """

    def __init__(self, seconds: float = 60, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._last: dict[Hashable, tuple[float, int]] = {}

    def passes(self, key: Hashable) -> int | None:
        """How many events of the key were held back since the last one let through; None to hold this one back too."""
        now = self._clock()
        last, held = self._last.get(key, (None, 0))
        if last is not None and now - last < self._seconds:
            self._last[key] = (last, held + 1)
            return None
        self._last[key] = (now, 0)
        return held

    def forget(self, key: Hashable) -> None:
        """Lets the next event of the key through."""
        self._last.pop(key, None)


def _parts(record: logging.LogRecord) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": {"WARNING": "warn", "CRITICAL": "error"}.get(record.levelname, record.levelname.lower()),
        "component": record.name.removeprefix(f"{_ROOT}."),
        "msg": without_credentials(record.getMessage()),
    }
    for key, value in getattr(record, "fields", {}).items():
        parts[key] = without_credentials(value) if isinstance(value, str) else value
    if record.exc_info and record.exc_info[0] is not None:
        parts["error"] = record.exc_info[0].__name__
        frame = record.exc_info[2]
        while frame is not None and frame.tb_next is not None:
            frame = frame.tb_next
        if frame is not None:  # the place, never the values: an exception's text may quote a log line
            parts["at"] = f"{frame.tb_frame.f_code.co_filename.rpartition(_ROOT)[2].lstrip('/')}:{frame.tb_lineno}"
    return parts


class _Logfmt(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return " ".join(f"{key}={_quoted(value)}" for key, value in _parts(record).items())


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(_parts(record), ensure_ascii=False, default=lambda value: without_credentials(str(value)))


def _quoted(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = without_credentials(str(value))
    return text if _BARE.fullmatch(text) else json.dumps(text, ensure_ascii=False)
