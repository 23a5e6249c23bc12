"""JSON values as token counts, times and words; strict where a guess would change a sum."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final

MOST_TOKENS: Final = 2**53
"""No request has more; beyond it floats lose whole numbers and SQLite's sums their range."""

LONGEST_SECONDS: Final = 1e11
"""No span is longer: moments are no further apart up to the year 5138, and sums of endless ones would be no number."""

_WHOLE = re.compile(r"\s*([+-]?\d{1,19})(?:\.0*)?\s*")
_GO = re.compile(r"(.*?\d) ?([+-]\d{2}:?\d{2})?(?: [A-Z]{3,4})?(?: M=[+-][\d.]+)?")
_SLASHES = re.compile(r"(\d{4})/(\d{2})/(\d{2})(?=[ T]|$)")
_COMPACT = re.compile(r"\s*((?:20)\d{6})(?:(\d{6})(\d{3})?)?\s*")
"""`20261102`, `20261102100000` and with milliseconds: no number of s, ms, µs or ns has as many digits today."""
_EPOCH = re.compile(r"\s*\d{1,20}(?:\.\d{1,12})?\s*")
_UNITS: Final = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_LONGEST_MILLISECONDS: Final = 10**13
"""More than any number of milliseconds until the year 2286."""
LONGEST_WORD: Final = 512


def tokens(value: Any) -> tuple[int | None, str | None]:  # noqa: PLR0911  # one line per way to be no count
    """A token count, and what is wrong with it where it is none.

    Cohere reports floats, OTLP-JSON and database exports text; a fraction of a token, a truth value, a negative or
    endless number is no count.
    """
    if isinstance(value, str):
        found = _WHOLE.fullmatch(value)
        if found is None:
            return None, "not_a_number"
        value = int(found[1])
    elif isinstance(value, float):
        if not math.isfinite(value):
            return None, "not_a_number"
        if not value.is_integer():
            return None, "not_whole"
        value = int(value)
    elif isinstance(value, bool) or not isinstance(value, int):
        return None, "not_a_number"
    if value < 0:
        return None, "negative"
    if value > MOST_TOKENS:
        return None, "too_large"
    return value, None


def seconds_since_epoch(value: Any) -> float | None:
    """A moment in seconds since 1970, from text or a number of s, ms, µs or ns; None where it is none.

    Text is ISO 8601, or as Go, HTTP and access logs write it; without a zone it is UTC. The unit of a number follows
    from its size: all four tell apart any year after 1973. Year, month and day without anything between them, with the
    time of day or without, are a date in text, and in a number where the time of day is there too.
    """
    if isinstance(value, str):
        if (found := _COMPACT.fullmatch(value)) and (moment := _compact(found)) is not None:
            return moment
        if _EPOCH.fullmatch(value):
            value = float(value)
        else:
            return _iso(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e20:  # noqa: PLR2004  # NaN too
        return None
    if value >= _LONGEST_MILLISECONDS and (found := _COMPACT.fullmatch(str(value))):
        moment = _compact(found)
        if moment is not None:
            return moment
    for parts in (1, 10**3, 10**6, 10**9):
        if value / parts < 1e11:  # noqa: PLR2004  # the year 5138
            return value / parts
    return None


def _compact(found: re.Match[str]) -> float | None:
    day, clock, thousandths = found.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock or '000000'}.{thousandths or '000'}")
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC).timestamp()


def _iso(text: str) -> float | None:
    text = text.strip()
    moment = None
    for parse in (datetime.fromisoformat, _go, _slashed, _http, _access_log):
        try:
            moment = parse(text)
        except (ValueError, TypeError, OverflowError):
            continue
        break
    if moment is None:
        return None
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _go(text: str) -> datetime:
    """`2026-03-02 19:59:00.5 +0000 UTC` as Go prints it, `2026-03-02 19:59:00 UTC`, and small letters."""
    text = text.upper()
    if text.endswith("Z"):
        return datetime.fromisoformat(text)
    found = _GO.fullmatch(text)
    if found is None or (found[2] is None and not text.endswith((" UTC", " GMT"))):
        raise ValueError
    return datetime.fromisoformat(found[1] + (found[2] or ""))


def _slashed(text: str) -> datetime:
    """`2026/03/02 19:59:00`, as Go's log and nginx's error log begin."""
    found = _SLASHES.match(text)
    if found is None:
        raise ValueError
    return datetime.fromisoformat("-".join(found.groups()) + text[found.end() :])


def _http(text: str) -> datetime:
    """`Mon, 02 Mar 2026 19:59:00 GMT`."""
    from email.utils import parsedate_to_datetime  # noqa: PLC0415  # slow to import, and hardly a log writes these

    return parsedate_to_datetime(text)


def _access_log(text: str) -> datetime:
    """`02/Mar/2026:19:59:00 +0000`."""
    return datetime.strptime(text.strip("[]"), "%d/%b/%Y:%H:%M:%S %z")


def duration(value: Any, unit: str) -> float | None:
    """A span in seconds, from a number or its text in s, ms, us or ns; None where it is none, negative or endless."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        span = float(value) * _UNITS[unit]
    except OverflowError:
        return None
    return span if 0 <= span < LONGEST_SECONDS else None


def word(value: Any) -> str | None:
    """A name or id as text, None where it is empty or an object.

    Of a long one only the front is kept, and a hash of the whole: ids that begin alike are those of other requests.
    """
    if isinstance(value, str):
        return (value if len(value) <= LONGEST_WORD else _shortened(value)) or None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        try:
            return word(str(value))
        except ValueError:  # more digits than the interpreter prints
            return None
    return None


def _shortened(text: str) -> str:
    mark = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return text[: LONGEST_WORD - len(mark)] + mark
