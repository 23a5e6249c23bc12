"""Usage maps: reading, folding and compiling the facts of one log format.

A map is facts only, `metric_maps/usage/<format>.yaml`; `metric_maps/schema/usage.schema.json` explains its keys.
A map of the user's own follows the same schema. The common case, a known object inside an envelope:

    format: shop.llm
    usage_from: openai.chat
    at: $.response.body
    id: $.request_id
    time: $.ts
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache, cached_property
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.documents import DocumentError, data_root, load_yaml, place, read_schema, validate

from .conditions import NEVER, Some, parse_condition, parse_paths, parse_some
from .mistakes import look
from .paths import Path, PathError, parse_path
from .record import TTLS
from .values import word

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .conditions import Condition

TOKENS = ("input", "extra_input", "output", "reasoning", "extra_output", "total", "read", "write", "uncached")
_OF_EXTENDER = ("format", "aliases", "extends", "usage_from", "at")
IDLE_SECONDS = 300.0
"""How long a request whose output is not final may be silent; reasoning models pause for minutes."""


@dataclass(frozen=True, slots=True)
class Span:
    """A time span in a record: a number with a unit, or from one moment to another."""

    path: Path | None
    unit: str
    start: tuple[Path, ...] = ()
    end: tuple[Path, ...] = ()
    before: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class StatusRule:
    """One way to tell how a request ended."""

    condition: Condition | None
    status: str
    paths: tuple[Path, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AdditiveRule:
    """A rule of its own for some records."""

    condition: Condition
    rule: str
    total_ignored: bool


@dataclass(frozen=True, slots=True)
class WriteList:
    """Writes by time to live as a list of objects."""

    at: tuple[Path, ...]
    ttl: str
    tokens: str


@dataclass(frozen=True, slots=True)
class PartsRule:
    """Calls within a request that the usage object leaves out."""

    at: tuple[Path, ...]
    kind: str
    model: str
    add: frozenset[str]
    unclear: frozenset[str]


@dataclass(frozen=True, slots=True)
class Stream:
    """How several lines make one record."""

    starts: Some
    any_opens: bool
    closed: Some
    complete: Some
    sequential: bool
    unfinished_is_partial: bool
    idle_seconds: float


@dataclass(frozen=True, slots=True)
class ContextRule:
    """Lines that say something about later lines of the same file."""

    condition: Condition
    sets: Mapping[str, tuple[Path, ...]]


@dataclass(frozen=True, slots=True)
class Minimum:
    """The shortest prefix that a provider caches for a model."""

    model: re.Pattern[str] | None
    tokens: int
    as_of: str
    source: str


@dataclass(frozen=True, slots=True)
class UsageMap:
    """A format's facts, compiled. Each attribute is the schema's key of the same name."""

    format: str
    aliases: tuple[str, ...]
    title: str
    aggregate: bool
    provider: str
    provider_paths: tuple[Path, ...]
    provider_names: Mapping[str, str]
    decode: tuple[Path, ...]
    each: tuple[Path, ...]
    inherit: tuple[str, ...]
    attributes: tuple[Path, ...]
    skip: tuple[tuple[Condition, str], ...]
    usage: tuple[Path, ...]
    id: tuple[Path, ...]
    identity_has_status: bool
    time: tuple[Path, ...]
    model: tuple[Path, ...]
    service_tier: tuple[Path, ...]
    batch: bool | Some | None
    retry: Some
    replay: Some
    status: tuple[StatusRule, ...]
    default_status: str
    tokens: Mapping[str, tuple[Path, ...]]
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
    absent_cache_is_none: bool
    write_outside: bool
    inferred: bool
    parts: PartsRule | None
    ttft: tuple[Span, ...]
    duration: tuple[Span, ...]
    stream: Stream | None
    cumulative: bool
    last: tuple[Path, ...]
    context: tuple[ContextRule, ...]
    minimum: tuple[Minimum, ...]

    def minimum_for(self, model: str | None) -> Minimum | None:
        """The shortest cacheable prefix of a model, None where nobody knows; the first entry that fits."""
        for entry in self.minimum:
            if entry.model is None or (model is not None and entry.model.search(model)):
                return entry
        return None


class UnknownFormatError(ValueError):
    """A format that no map describes.

    Attributes:
        format: the name that was asked for.
        near: known names that look like it.
    """

    def __init__(self, name: str, near: tuple[str, ...]) -> None:
        self.format, self.near = name, near
        hint = f"; did you mean {' or '.join(near)}?" if near else "; `usage formats` lists them"
        super().__init__(f"no usage map is called {name!r}{hint}")


class MapBook:
    """Every known map: the shipped ones, and the user's from folders and files, which may not reuse a shipped name.

    Raises:
        DocumentError: for a user map that cannot be used; shipped ones are read when asked for.
    """

    def __init__(self, user: Iterable[File | str] = ()) -> None:
        own: dict[str, dict[str, Any]] = {}
        self._documents: Mapping[str, dict[str, Any]] = ChainMap(own, _shipped())  # type: ignore[arg-type]  # written to `own` only
        self._files = {name: f"{name}.yaml" for name in self._documents}
        self._own: set[str] = set()
        self._maps: dict[str, UsageMap] = {}
        for file in _user_files(user):
            document = read_map(file)
            name = document["format"]
            if name in self._documents:
                raise DocumentError(str(file), "format", name, "a name that no other map has")
            own[name], self._files[name] = document, str(file)
            self._own.add(name)
        if own:
            self._aliases  # noqa: B018  # a user's map may claim a name that another has
        for name in self._own:
            self.get(name)

    @cached_property
    def _aliases(self) -> Mapping[str, str]:
        """Names by alias; to know them, every map must be read, which most commands need not."""
        aliases: dict[str, str] = {}
        for name, document in self._documents.items():
            for alias in document.get("aliases", ()):
                if alias in self._documents or aliases.get(alias, name) != name:
                    raise DocumentError(self._files[name], "aliases", alias, "a name that no other map has")
                aliases[alias] = name
        return aliases

    def _name(self, name: str) -> str:
        return name if name in self._documents else self._aliases.get(name, name)

    @property
    def formats(self) -> tuple[str, ...]:
        """Names of all maps, aliases aside."""
        return tuple(sorted(self._documents))

    def get(self, name: str) -> UsageMap:
        """The map of a format, by its name or an alias.

        Raises:
            UnknownFormatError: where there is none.
            DocumentError: where the map cannot be compiled.
        """
        name = self._name(name)
        if name not in self._documents:
            near = get_close_matches(name, [*self._documents, *self._aliases], n=2)
            raise UnknownFormatError(name, tuple(near))
        if name not in self._maps:
            compiled = _shipped_map(name) if name not in self._own else self._compile(name)
            self._maps[name] = compiled
        return self._maps[name]

    def _compile(self, name: str) -> UsageMap:
        return _compile(self._fold(name, ()), self._files[name])

    def _fold(self, name: str, seen: tuple[str, ...]) -> dict[str, Any]:
        document = self._documents[name]
        base = document.get("extends") or document.get("usage_from")
        if base is None:
            return document
        key = "extends" if "extends" in document else "usage_from"
        base = self._name(base)
        if base not in self._documents:
            near = get_close_matches(base, [*self._documents, *self._aliases], n=2)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise DocumentError(self._files[name], key, base, f"the name of a format{hint}")
        if base in seen or base == name:
            raise DocumentError(self._files[name], key, base, "a format that does not lead back to this one")
        folded = self._fold(base, (*seen, name))
        below = {key: value for key, value in folded.items() if key not in _OF_EXTENDER}
        if key == "usage_from":
            below = _moved(below, _path(document.get("at", "$"), "at", self._files[name]))
        return _merged(below, document)


@cache
def shipped_maps() -> MapBook:
    """The shipped maps, read once per process."""
    return MapBook()


def get_map(name: str) -> UsageMap:
    """A shipped map by its name or an alias.

    Raises:
        UnknownFormatError: where there is none.
    """
    return shipped_maps().get(name)


def read_map(file: File | str) -> dict[str, Any]:
    """Reads one map's YAML and holds it against the schema.

    Raises:
        DocumentError: where it is none.
    """
    document = _with_text_keys(load_yaml(file))
    look(document, str(file))
    validate(document, read_schema("usage"), str(file))
    if not document.get("tokens") and not {"extends", "usage_from"} & document.keys():
        expected = "paths of the numbers, or usage_from: a format that knows them"
        raise DocumentError(str(file), "tokens", "nothing", expected)
    read: dict[str, Any] = document
    return read


def _with_text_keys(data: Any) -> Any:
    """YAML's numbers and truth values as keys of words: `values: {200: success, true: success}`."""
    if isinstance(data, dict):
        return {word(key) if not isinstance(key, str) else key: _with_text_keys(value) for key, value in data.items()}
    return [_with_text_keys(item) for item in data] if isinstance(data, list) else data


class _Shipped(Mapping[str, dict[str, Any]]):
    """The YAML of the shipped maps by format, each read when it is asked for; tests hold all to the schema."""

    def __init__(self, folder: File) -> None:
        self._files = {file.stem: file for file in sorted(folder.glob("*.yaml"))}
        self._read: dict[str, dict[str, Any]] = {}

    def __getitem__(self, name: str) -> dict[str, Any]:
        if name not in self._read:
            document = load_yaml(self._files[name])
            if not isinstance(document, dict) or document.get("format") != name:
                raise DocumentError(str(self._files[name]), "format", "another name", f"{name}, as the file is called")
            self._read[name] = document
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        return name in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


@cache
def _shipped() -> Mapping[str, dict[str, Any]]:
    return _Shipped(data_root() / "usage")


@cache
def _shipped_map(name: str) -> UsageMap:
    return MapBook()._compile(name)  # noqa: SLF001  # its own class's member


def _user_files(user: Iterable[File | str]) -> list[File]:
    files: list[File] = []
    for entry in map(File, user):
        if entry.is_dir():
            files += sorted({*entry.glob("*.yaml"), *entry.glob("*.yml")})
        else:
            files.append(entry)
    return files


def _merged(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = _merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def _moved(data: Any, outer: Path) -> Any:
    """A map's data with every path from the record's root moved below another."""
    if isinstance(data, str):
        return str(parse_path(data).within(outer)) if data.startswith("$") else data
    if isinstance(data, list):
        return [_moved(item, outer) for item in data]
    if isinstance(data, dict):
        return {key: value if key in _PROSE else _moved(value, outer) for key, value in data.items()}
    return data


_PROSE = frozenset(
    {"title", "sources", "source", "note", "meaning", "reason", "names", "values", "any_of", "none_of", "contains"}
)
"""Keys whose text is never a path."""


def _path(text: str, where: str, file: str) -> Path:
    try:
        return parse_path(text)
    except PathError as error:
        raise DocumentError(file, where, text, "a path like $.a.b[0].'c.d'") from error


def _compile(data: Mapping[str, Any], file: str) -> UsageMap:
    try:
        return _compiled(data)
    except PathError as error:
        where = next(_places(data, error.path), ())
        raise DocumentError(file, place(where), error.path, "a path like $.a.b[0].'c.d'") from error
    except re.error as error:
        raise DocumentError(file, "minimum", str(error.pattern), "a regular expression") from error


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
        inherit=tuple(data.get("inherit", ())),
        attributes=parse_paths(data.get("attributes")),
        skip=tuple((parse_condition(entry), entry["reason"]) for entry in data.get("skip", ())),
        usage=parse_paths(data.get("usage", "$.usage")),
        id=parse_paths(data.get("id")),
        identity_has_status=data.get("identity") == "id_and_status",
        time=parse_paths(data.get("time")),
        model=parse_paths(data.get("model")),
        service_tier=parse_paths(data.get("service_tier")),
        batch=parse_some(batch) if isinstance(batch, list) else batch,
        retry=parse_some(data.get("retry")),
        replay=parse_some(data.get("replay")),
        status=tuple(map(_status_rule, status.get("rules", ()))),
        default_status=status.get("default", "success"),
        tokens={name: parse_paths(tokens[name]) for name in TOKENS if name in tokens},
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
        absent_cache_is_none=additive.get("absent_cache", "none" if rule == "exclusive" else "unknown") == "none",
        write_outside=additive.get("write_outside", False),
        inferred=additive.get("inferred", False),
        parts=_parts(data["parts"]) if data.get("parts") else None,
        ttft=tuple(map(_span, data.get("ttft", ()))),
        duration=tuple(map(_span, data.get("duration", ()))),
        stream=_stream(data["stream"]) if data.get("stream") is not None else None,
        cumulative=data.get("cumulative", False),
        last=parse_paths(data.get("last")),
        context=tuple(
            ContextRule(parse_condition(entry), {name: parse_paths(paths) for name, paths in entry["set"].items()})
            for entry in data.get("context", ())
        ),
        minimum=tuple(
            Minimum(
                re.compile(entry["model"]) if "model" in entry else None,
                entry["tokens"],
                entry["as_of"],
                entry["source"],
            )
            for entry in data.get("minimum", ())
        ),
    )


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


def _span(data: Mapping[str, Any]) -> Span:
    if "path" in data:
        return Span(parse_path(data["path"]), data["unit"])
    return Span(None, "s", parse_paths(data["from"]), parse_paths(data["to"]), parse_paths(data.get("before")))


def _stream(data: Mapping[str, Any]) -> Stream:
    return Stream(
        starts=parse_some(data.get("starts")),
        any_opens=data.get("opens", "any") == "any",
        closed=parse_some(data.get("closed")),
        complete=parse_some(data.get("complete")),
        sequential=data.get("anonymous", "distinct") == "sequential",
        unfinished_is_partial=data.get("unfinished", "partial") == "partial" and bool(data.get("closed")),
        idle_seconds=data.get("idle_seconds", IDLE_SECONDS),
    )


__all__ = ["NEVER", "MapBook", "UnknownFormatError", "UsageMap", "get_map", "read_map", "shipped_maps"]
