"""The canonical usage record: what every log format comes down to, one per settled request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

STATUSES: Final = ("success", "failed", "cancelled", "incomplete")

QUALITIES: Final = (
    "ok",
    "derived",
    "override",
    "cache_unknown",
    "usage_missing",
    "partial",
    "served_from_gateway_cache",
    "anomaly",
    "ambiguous",
)
"""How far a record's numbers can be trusted.

ok: the source's own rule, and nothing contradicts it. derived: the rule was found from the reported total, or the
source is known only by inference. override: the rule was set by configuration. cache_unknown: the total is known, what
of it came from a cache is not. usage_missing: a request without usage. partial: cut off, the output is a lower bound.
served_from_gateway_cache: a replay, nothing reached the model. anomaly: the numbers contradict each other or the
source; what could not be kept is unknown. ambiguous: several readings fit and none was chosen.
"""

TTLS: Final = ("5m", "30m", "1h", "12h", "unknown")
"""Values of the `ttl` label of cache writes."""

NOTHING: Final[Mapping[str, Any]] = {}


class UsageRecord(msgspec.Struct, frozen=True, gc=False):
    """One settled request; None is unknown, never 0.

    Where total, read, write and uncached are all known, `uncached + read + write == total`. A write that is not
    reported (None) is none of the total's business: then `uncached + read == total`.

    Attributes:
        id: the provider's id of the response as logged, None where there is none.
        format: name of the usage map.
        provider: whose prices and rules apply.
        model: as logged, after the source's aliases.
        time: seconds since 1970 of the first line that carried one.
        status: one of `STATUSES`.
        quality: one of `QUALITIES`.
        anomalies: kinds of oddities, each to be counted once.
        total_input_tokens: input, cached tokens included.
        cache_read_tokens: of these, read from a prompt cache.
        cache_write_tokens: of these, written to a prompt cache.
        cache_write_by_ttl: the writes by time to live; sums to the writes unless `ttl_split_mismatch` is among the
            anomalies, when it is empty.
        uncached_input_tokens: of these, neither.
        output_tokens: output, reasoning included.
        ttft_seconds: to the first non-empty content fragment.
        duration_seconds: to the end of the response.
        attempt: `first`, or `retry` for a further attempt of the same operation.
        service_tier: as logged, None where nothing says.
        batch: whether batch prices apply, None where nothing says.
        components: where not empty, the parts that make up the record and are priced one by one instead of it: each
            its own call of a model (compaction), with its own tier thresholds.
        extra: fields that the source's configuration asked for, by name.
    """

    id: str | None
    format: str
    provider: str
    model: str | None
    time: float | None
    status: str
    quality: str
    anomalies: tuple[str, ...]
    total_input_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    cache_write_by_ttl: Mapping[str, int]
    uncached_input_tokens: int | None
    output_tokens: int | None
    ttft_seconds: float | None = None
    duration_seconds: float | None = None
    attempt: str = "first"
    service_tier: str | None = None
    batch: bool | None = None
    components: tuple[UsageRecord, ...] = ()
    extra: Mapping[str, str] = NOTHING


PRINTED: Final = UsageRecord.__struct_fields__[:16]
"""Fields that `usage normalise --json` prints, in this order."""


def as_json(record: UsageRecord) -> dict[str, Any]:
    """The record as `usage normalise --json` prints it."""
    return {name: getattr(record, name) for name in PRINTED}


class Quarantined(msgspec.Struct, frozen=True):
    """A record that cannot be decided: counted by reason, in no sum.

    Attributes:
        reason: a word for a metric's label.
        usage: the numbers of the usage object, only where the source keeps them; no text.
    """

    reason: str
    usage: Mapping[str, Any] | None = None


class Duplicate(msgspec.Struct, frozen=True):
    """A repeat of a settled record."""


class Skipped(msgspec.Struct, frozen=True):
    """A line, or an item in one, that gives no record.

    Attributes:
        kind: `lost` where it should have given one, `ignored` where the map's own rule says that it does not.
        reason: a word for a metric's label.
        detail: what was wrong, for people; no text of the line.
    """

    kind: str
    reason: str
    detail: str = ""


Outcome: TypeAlias = UsageRecord | Quarantined | Duplicate | Skipped
"""What becomes of what a line said."""


class Part(msgspec.Struct, gc=False):
    """Numbers of a call of a model within a request, beside those of the usage object itself."""

    kind: str
    model: str | None
    input: int | None
    output: int | None
    read: int | None
    write: int | None
    split: dict[str, int] | None


class Fragment(msgspec.Struct, gc=False):
    """What one line says about a request; also the sum of what several lines said.

    Token fields are as the source reports them, before its additive rule is applied.

    Attributes:
        id: as logged; never written to any file.
        key: hash of what identifies the request, None where nothing does.
        rule: `inclusive`, `exclusive`, … where the record itself decides, else None.
        gateway: whether a gateway wrote the numbers, where the record itself says.
        bad: `(field, problem)` of token fields that are not numbers of tokens.
        seen: whether there was a usage object with a number in it.
        starts: whether a new request begins with this line.
        adds: whether its numbers come to those of the lines before it.
        closed: whether the final output count has been seen.
        complete: whether nothing more follows.
        context: values for later lines of the same file; then nothing else is set.
        own: whether its numbers are the request's own in a log of sums.
    """

    id: str | None = None
    key: bytes | None = None
    provider: str | None = None
    model: str | None = None
    time: float | None = None
    bad_time: bool = False
    status: str | None = None
    input: int | None = None
    extra_input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    extra_output: int | None = None
    total: int | None = None
    read: int | None = None
    write: int | None = None
    uncached: int | None = None
    split: dict[str, int] | None = None
    rule: str | None = None
    total_ignored: bool | None = None
    gateway: bool | None = None
    replay: bool | None = None
    ttft: float | None = None
    duration: float | None = None
    attempt: str | None = None
    tier: str | None = None
    batch: bool | None = None
    parts: list[Part] | None = None
    bad: dict[str, str] | None = None
    extra: dict[str, str] | None = None
    seen: bool = False
    starts: bool = False
    adds: bool = False
    closed: bool = False
    complete: bool = False
    context: dict[str, str] | None = None
    last: dict[str, int] | None = None
    own: bool = False
    raw: dict[str, Any] | None = None
