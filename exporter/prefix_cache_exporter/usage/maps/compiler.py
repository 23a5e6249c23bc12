"""A map's document, folded, to its compiled facts: paths parsed, conditions built, what it leaves out filled in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.documents import DocumentError, place
from prefix_cache_exporter.usage.conditions import Some, parse_condition, parse_paths, parse_some
from prefix_cache_exporter.usage.paths import PathError, parse_path
from prefix_cache_exporter.usage.record import TTLS

from .folding import PROSE
from .model import (
    IDLE_SECONDS,
    AdditiveRule,
    ContextRule,
    Modalities,
    PartsRule,
    Span,
    StatusRule,
    Stream,
    UsageMap,
    WriteList,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prefix_cache_exporter.usage.paths import Path

_DOCKER = "log"
"""The key under which Docker's json-file driver stores a line; a map with paths into it wants what stands around it."""
_TOKENS = ("input", "extra_input", "output", "reasoning", "extra_output", "total", "read", "write", "uncached")


def compile_map(data: Mapping[str, Any], file: str) -> UsageMap:
    """Compiles a folded document that the schema has passed.

    Args:
        data: the document.
        file: where it stands, for messages.

    Raises:
        DocumentError: where a path or a pattern in it is none.
    """
    try:
        return _compiled(data)
    except PathError as error:
        where = next(_places(data, error.path), ())
        raise DocumentError(file, place(where), error.path, "a path like $.a.b[0].'c.d'") from error


def _places(data: Any, text: str, within: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where a text stands in a map."""
    if data == text:
        yield within
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from _places(value, text, (*within, key))


def _compiled(data: Mapping[str, Any]) -> UsageMap:
    provider = data.get("provider", "unknown")
    if isinstance(provider, str):
        provider = {"default": provider}
    tokens = data.get("tokens", {})
    additive = data.get("additive", {})
    status = data.get("status", {})
    rule = additive.get("rule", "inclusive")
    write_list = tokens.get("write_list")
    batch = data.get("batch")
    return UsageMap(
        format=data["format"],
        aliases=tuple(data.get("aliases", ())),
        title=data.get("title", ""),
        aggregate=data.get("aggregate", False),
        provider=provider.get("default", "unknown"),
        provider_paths=parse_paths(provider.get("from")),
        provider_names={name.casefold(): meant for name, meant in provider.get("names", {}).items()},
        decode=parse_paths(data.get("decode")),
        each=parse_paths(data.get("each")),
        placed=parse_path(data["placed"]) if "placed" in data else None,
        within=parse_path(data["within"]) if "within" in data else None,
        unwraps=not any(path.steps[:1] == (_DOCKER,) for path in _from_record(data)),
        rows=any(isinstance(step, int) for path in _from_record(data) for step in path.steps[:1]),
        text=data.get("text", "lost"),
        inherit=tuple(data.get("inherit", ())),
        attributes=parse_paths(data.get("attributes")),
        foreign=tuple((parse_condition(entry), entry["what"]) for entry in data.get("foreign", ())),
        skip=tuple((parse_condition(entry), entry["reason"]) for entry in data.get("skip", ())),
        usage=parse_paths(data.get("usage", "$.usage")),
        id=parse_paths(data.get("id")),
        identity_has_status=data.get("identity") == "id_and_status",
        time=parse_paths(data.get("time")),
        model=parse_paths(data.get("model")),
        service_tier=parse_paths(data.get("service_tier")),
        tier_when=tuple((parse_condition(entry), entry["tier"]) for entry in data.get("tier_when", ())),
        batch=parse_some(batch) if isinstance(batch, list) else batch,
        retry=parse_some(data.get("retry")),
        replay=parse_some(data.get("replay")),
        status=tuple(map(_status_rule, status.get("rules", ()))),
        default_status=status.get("default", "success"),
        tokens={name: parse_paths(tokens[name]) for name in _TOKENS if name in tokens},
        read_parts=parse_paths(tokens.get("read_parts")),
        modalities=_modalities(tokens["modalities"]) if "modalities" in tokens else None,
        write_by_ttl={
            ttl: parse_paths(tokens["write_by_ttl"][ttl]) for ttl in TTLS if ttl in tokens.get("write_by_ttl", {})
        },
        write_list=WriteList(parse_paths(write_list["at"]), write_list["ttl"], write_list["tokens"])
        if write_list
        else None,
        write_is_split=tokens.get("write_is_split", False),
        rule=rule,
        gateway=_some_or(additive.get("gateway", False)),
        rules=tuple(
            AdditiveRule(parse_condition(entry), entry["rule"], entry.get("total") == "ignored")
            for entry in additive.get("when", ())
        ),
        total_ignored=additive.get("total") == "ignored",
        otherwise=additive.get("otherwise", "ambiguous"),
        reasoning_outside=additive.get("reasoning", "inside") == "outside",
        absent_read_is_zero=additive.get("absent_read") == "zero",
        absent_write_is_zero=additive.get("absent_write") == "zero",
        absent_output_is_zero=additive.get("absent_output") == "zero",
        absent_cache_is_none=additive.get("absent_cache", "none" if rule == "exclusive" else "unknown") == "none",
        write_outside=additive.get("write_outside", False),
        inferred=additive.get("inferred", False),
        parts=_parts(data["parts"]) if data.get("parts") else None,
        ttft=tuple(map(_span, data.get("ttft", ()))),
        duration=tuple(map(_span, data.get("duration", ()))),
        stream=_stream(data["stream"]) if data.get("stream") is not None else None,
        cumulative=data.get("cumulative", False),
        own=parse_some(data.get("own")),
        last=parse_paths(data.get("last")),
        context=tuple(
            ContextRule(parse_condition(entry), {name: parse_paths(paths) for name, paths in entry["set"].items()})
            for entry in data.get("context", ())
        ),
    )


def _from_record(data: Any) -> Iterator[Path]:
    """The paths of a map that begin at the record."""
    if isinstance(data, str) and data.startswith("$"):
        yield parse_path(data)
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        if key not in PROSE:
            yield from _from_record(value)


def _some_or(data: Any) -> bool | Some:
    return data if isinstance(data, bool) else parse_some(data)


def _status_rule(data: Mapping[str, Any]) -> StatusRule:
    if "values" in data:
        values = {key.casefold(): status for key, status in data["values"].items()}
        return StatusRule(None, "", parse_paths(data["path"]), values)
    return StatusRule(parse_condition(data), data["is"])


def _parts(data: Mapping[str, Any]) -> PartsRule:
    return PartsRule(
        at=parse_paths(data["at"]),
        kind=data["kind"],
        model=data.get("model", "model"),
        add=frozenset(data["add"]),
        unclear=frozenset(data.get("unclear", ())),
    )


def _modalities(data: Mapping[str, Any]) -> Modalities:
    return Modalities(parse_paths(data["at"]), {name: key for name, key in data.items() if name != "at"})


def _span(data: Mapping[str, Any]) -> Span:
    if "path" in data:
        condition = parse_some(data["when"]) if "when" in data else None
        return Span(parse_path(data["path"]), data["unit"], condition=condition)
    return Span(None, "s", parse_paths(data["from"]), parse_paths(data["to"]), parse_paths(data.get("before")))


def _stream(data: Mapping[str, Any]) -> Stream:
    closed = data.get("closed") or data.get("complete")  # after which nothing follows, there is a final count if any
    return Stream(
        starts=parse_some(data.get("starts")),
        any_opens=data.get("opens", "any") == "any",
        adds=parse_some(data.get("adds")),
        closed=parse_some(closed),
        complete=parse_some(data.get("complete")),
        sequential=data.get("anonymous", "distinct") == "sequential",
        unfinished_is_partial=data.get("unfinished", "partial") == "partial" and bool(closed),
        idle_seconds=data.get("idle_seconds", IDLE_SECONDS),
    )
