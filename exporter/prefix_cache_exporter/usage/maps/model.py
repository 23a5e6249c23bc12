"""What is known of one log format: a usage map's facts, compiled, as every reader of lines takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prefix_cache_exporter.usage.conditions import Condition, Some
    from prefix_cache_exporter.usage.paths import Path

IDLE_SECONDS = 300.0
"""How long a request whose output is not final may be silent; reasoning models pause for minutes."""


class Span(msgspec.Struct, frozen=True):
    """A time span in a record: a number with a unit, or from one moment to another."""

    path: Path | None
    unit: str
    start: tuple[Path, ...] = ()
    end: tuple[Path, ...] = ()
    before: tuple[Path, ...] = ()
    condition: Condition | None = None


class StatusRule(msgspec.Struct, frozen=True):
    """One way to tell how a request ended."""

    condition: Condition | None
    status: str
    paths: tuple[Path, ...] = ()
    values: Mapping[str, str] = msgspec.field(default_factory=dict)


class AdditiveRule(msgspec.Struct, frozen=True):
    """A rule of its own for some records."""

    condition: Condition
    rule: str
    total_ignored: bool


class WriteList(msgspec.Struct, frozen=True):
    """Writes by time to live as a list of objects."""

    at: tuple[Path, ...]
    ttl: str
    tokens: str


class Modalities(msgspec.Struct, frozen=True):
    """Objects with numbers of audio, images and the like, beside those of a usage object; keys by the number's name."""

    at: tuple[Path, ...]
    keys: Mapping[str, str]


class PartsRule(msgspec.Struct, frozen=True):
    """Calls within a request that the usage object leaves out."""

    at: tuple[Path, ...]
    kind: str
    model: str
    add: frozenset[str]
    unclear: frozenset[str]


class Stream(msgspec.Struct, frozen=True):
    """How several lines make one record."""

    starts: Some
    any_opens: bool
    adds: Some
    closed: Some
    complete: Some
    sequential: bool
    unfinished_is_partial: bool
    idle_seconds: float


class ContextRule(msgspec.Struct, frozen=True):
    """Lines that say something about later lines of the same file."""

    condition: Condition
    sets: Mapping[str, tuple[Path, ...]]


class UsageMap(msgspec.Struct, frozen=True):
    """A format's facts, compiled. Each attribute is the schema's key of the same name, save for a few.

    Attributes:
        placed: where the object of the format that `usage_from` names stands; None where nothing is around it.
        within: where the lists of `each` stand in lines with an envelope; None where there is none around them.
        unwraps: whether lines as Docker's driver stores them are taken for what a program wrote into them.
        rows: whether records may be lists, looked into by number.
    """

    format: str
    aliases: tuple[str, ...]
    title: str
    aggregate: bool
    provider: str
    provider_paths: tuple[Path, ...]
    provider_names: Mapping[str, str]
    decode: tuple[Path, ...]
    each: tuple[Path, ...]
    placed: Path | None
    within: Path | None
    unwraps: bool
    rows: bool
    text: str
    inherit: tuple[str, ...]
    attributes: tuple[Path, ...]
    foreign: tuple[tuple[Condition, str], ...]
    skip: tuple[tuple[Condition, str], ...]
    usage: tuple[Path, ...]
    id: tuple[Path, ...]
    identity_has_status: bool
    time: tuple[Path, ...]
    model: tuple[Path, ...]
    service_tier: tuple[Path, ...]
    tier_when: tuple[tuple[Condition, str], ...]
    batch: bool | Some | None
    retry: Some
    replay: Some
    status: tuple[StatusRule, ...]
    default_status: str
    tokens: Mapping[str, tuple[Path, ...]]
    read_parts: tuple[Path, ...]
    modalities: Modalities | None
    write_by_ttl: Mapping[str, tuple[Path, ...]]
    write_list: WriteList | None
    write_is_split: bool
    rule: str
    gateway: bool | Some
    rules: tuple[AdditiveRule, ...]
    total_ignored: bool
    otherwise: str
    reasoning_outside: bool
    absent_read_is_zero: bool
    absent_write_is_zero: bool
    absent_output_is_zero: bool
    absent_cache_is_none: bool
    write_outside: bool
    inferred: bool
    parts: PartsRule | None
    ttft: tuple[Span, ...]
    duration: tuple[Span, ...]
    stream: Stream | None
    cumulative: bool
    own: Some
    last: tuple[Path, ...]
    context: tuple[ContextRule, ...]
