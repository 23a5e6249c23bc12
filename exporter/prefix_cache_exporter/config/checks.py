"""What a JSON Schema cannot say about a configuration."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from prefix_cache_exporter.documents import DocumentError, place, shown
from prefix_cache_exporter.labels import DEFAULT_LIMITS, RESERVED, Limits
from prefix_cache_exporter.mistakes import refuse
from prefix_cache_exporter.usage.namespaces import bucket_names
from prefix_cache_exporter.usage.paths import EVERY, PathError, parse_path
from prefix_cache_exporter.web.address import AddressError, parse_address

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_Finding = tuple[str, str, str]
"""Place, what stood there, what was expected."""


def check(data: Mapping[str, Any], file: str) -> None:
    """Holds a configuration that satisfies the schema against itself.

    Raises:
        DocumentError: for every contradiction.
    """
    refuse((DocumentError(file, *finding) for finding in _findings(data)), data)


def check_map_folder(folder: Path, file: str, at: str) -> None:
    """Holds a folder of own maps against its layout: maps of neither kind would be left aside without a word.

    Raises:
        DocumentError: where it is not there, or has no place for maps.
    """
    if not folder.is_dir():
        raise DocumentError(file, at, str(folder), "a folder that is there")
    if not any((folder / kind).is_dir() for kind in ("vllm", "usage")):
        raise DocumentError(file, at, f"{folder} without vllm/ or usage/", "a folder with one of them, or both")


def _findings(data: Mapping[str, Any]) -> Iterator[_Finding]:
    yield from _infinite(data, ())
    yield from _addresses(data.get("web") or {})
    yield from _names(data)
    yield from _namespaces(data)
    yield from _standard_input(data)
    yield from _release(data.get("release") or {}, "release")
    for number, engine in enumerate(data.get("engines") or ()):
        yield from _engine(engine, f"engines[{number}]")
    for number, source in enumerate(data.get("usage") or ()):
        yield from _usage(source, f"usage[{number}]")


def _infinite(data: Any, path: tuple[str | int, ...]) -> Iterator[_Finding]:
    if isinstance(data, float) and not math.isfinite(data):
        yield place(path), str(data), "a finite number"
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from _infinite(value, (*path, key))


_AN_ADDRESS = "an http:// or https:// address of a host"
_TAKEN = frozenset({"/config", "/-/healthy", "/-/ready", "/-/reload"})


def _addresses(web: Mapping[str, Any]) -> Iterator[_Finding]:
    if web.get("telemetry_path") in _TAKEN:
        yield "web.telemetry_path", shown(web["telemetry_path"]), "a path that is not another page's"
    for key in ("telemetry_path", "route_prefix"):  # in a link, what follows two slashes is another host
        if (web.get(key) or "").startswith("//"):
            yield f"web.{key}", shown(web[key]), "a path that starts with one /"
    if web.get("external_url") and _parts(web["external_url"]) is None:
        yield "web.external_url", "another address", _AN_ADDRESS
    for number, address in enumerate(web.get("listen_address") or ()):
        try:
            parse_address(address)
        except AddressError as error:
            yield f"web.listen_address[{number}]", error.got, error.expected


def _names(data: Mapping[str, Any]) -> Iterator[_Finding]:
    # An engine and a log may share a name: they are then one source with two planes, which rules compare.
    for part in ("engines", "usage"):
        seen: dict[str, str] = {}
        for number, source in enumerate(data.get(part) or ()):
            at = f"{part}[{number}]"
            if source["name"] in seen:
                yield f"{at}.name", shown(source["name"]), f"another name than {seen[source['name']]} has"
            seen[source["name"]] = at


def _namespaces(data: Mapping[str, Any]) -> Iterator[_Finding]:
    """What is allowed by name, or is one of so many buckets, must have a place on the page."""
    limits: Mapping[str, Any] = data.get("limits") or {}
    names: set[str] = set()
    longest = limits.get("label_length", Limits().label_length)
    for number, source in enumerate(data.get("usage") or ()):
        spaces = source.get("namespaces") or {}
        names.update(bucket_names(spaces.get("buckets") or 0))
        for place_, name in enumerate(spaces.get("allow") or ()):
            names.add(name)
            if len(name) > longest:
                at = f"usage[{number}].namespaces.allow[{place_}]"
                yield at, f"a name of {len(name)} characters", f"at most limits.label_length ({longest})"
    wanted = len(names - RESERVED)
    most = (limits.get("labels") or {}).get("namespace", DEFAULT_LIMITS["namespace"])
    if wanted > most:
        yield "limits.labels.namespace", f"{most} for {wanted} namespaces", f"at least {wanted}"


def _standard_input(data: Mapping[str, Any]) -> Iterator[_Finding]:
    """Two readers would have every other piece of it."""
    readers = [number for number, source in enumerate(data.get("usage") or ()) if "-" in source["paths"]]
    for number in readers[1:]:
        yield f"usage[{number}].paths", '"-"', f"standard input in usage[{readers[0]}] alone"


def _engine(engine: Mapping[str, Any], at: str) -> Iterator[_Finding]:
    yield from _url(engine["url"], f"{at}.url")
    yield from _release(engine.get("release") or {}, f"{at}.release")
    poll, stale = engine.get("poll_seconds", 5), engine.get("stale_seconds", 60)
    if stale < poll:
        yield f"{at}.stale_seconds", shown(stale), f"at least poll_seconds ({shown(poll)})"
    tls = engine.get("tls") or {}
    if any(tls.values()) and not engine["url"].startswith("https:"):
        yield f"{at}.tls", "TLS settings for an http:// address", "an https:// address"
    if tls.get("key_file") and not tls.get("cert_file"):
        yield f"{at}.tls.key_file", "a key without a certificate", "cert_file beside it"


def _release(release: Mapping[str, Any], at: str) -> Iterator[_Finding]:
    given = {key for key, value in release.items() if value is not None and key != "file"}
    for key in ("template", "template_revision"):
        if given and key not in given:
            yield at, f"no {key}", "template and template_revision together"


def _url(url: str, at: str) -> Iterator[_Finding]:
    # The address itself is not shown: what is wrong with it may be that it holds a secret.
    parts = _parts(url)
    if parts is None:
        yield at, "another address", _AN_ADDRESS
        return
    if parts.username is not None or parts.password is not None:
        yield at, "an address with a user or password", "bearer_token_file or tls"
    if parts.query or parts.fragment:
        yield at, "an address with a query or fragment", "an address and a path"


def _parts(url: str) -> SplitResult | None:
    """The parts of an address that something can be asked at; None where it is none."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if usable else None


def _usage(source: Mapping[str, Any], at: str) -> Iterator[_Finding]:
    yield from _release(source.get("release") or {}, f"{at}.release")
    spaces = source.get("namespaces") or {}
    if spaces.get("allow") and spaces.get("buckets"):
        yield f"{at}.namespaces", "allow and buckets", "one of them"
    if spaces.get("buckets") and not spaces.get("key_file"):
        yield f"{at}.namespaces", "buckets without a key", "key_file beside buckets"
    if spaces.get("key_file") and not spaces.get("buckets"):
        yield f"{at}.namespaces", "a key without buckets", "buckets beside key_file"
    for name, path in (source.get("fields") or {}).items():
        yield from _path(path, f"{at}.fields.{name}")
    bands = source.get("ttft_bands") or []
    if bands != sorted(bands):
        yield f"{at}.ttft_bands", shown(bands), "rising edges"


def _path(text: str, at: str) -> Iterator[_Finding]:
    try:
        every = EVERY in parse_path(text).steps
    except PathError as error:
        yield at, shown(text), f".key, [0] or ['key'] from character {error.position + 1} on"
    else:
        if every:
            yield at, shown(text), "a path to one value, without [*]"
