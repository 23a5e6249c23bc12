"""`maps`: what the exporter knows of each vLLM release, and what it makes of a page."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping

    from prefix_cache_exporter.engine.apply import Application
    from prefix_cache_exporter.engine.maps import DialectMap, MapSet, VersionMap

_DONE, _FAILED = 0, 1


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `maps list`, `maps show` and `maps apply`."""
    maps = subparsers.add_parser(
        "maps",
        help="show the metric maps, or read a page through one",
        description="Metric maps say what each vLLM release exposes and what it means.",
        allow_abbrev=False,
    )
    commands = maps.add_subparsers(dest="maps", metavar="WHAT", required=True)
    everywhere = {
        "--maps": {"action": "append", "default": [], "metavar": "FOLDER", "help": "a folder of own maps; may repeat"},
        "--json": {"action": "store_true", "help": "print JSON"},
    }
    listed = commands.add_parser("list", help="every release that was read, and its map", allow_abbrev=False)
    show = commands.add_parser("show", help="the flat map of one version", allow_abbrev=False)
    show.add_argument("version", metavar="VERSION", help="as the server's /version says")
    show.add_argument("--dialect", metavar="NAME", help="only this dialect, like v0, v1 or rust")
    apply = commands.add_parser(
        "apply",
        help="read a page through the map of a version",
        description="Prints the canonical measures of a recorded page; with --previous, what was counted since then.",
        allow_abbrev=False,
    )
    apply.add_argument("page", metavar="PAGE", help="a /metrics body; - reads standard input")
    apply.add_argument("--engine-version", required=True, metavar="VERSION", help="as the server's /version says")
    apply.add_argument("--content-type", metavar="TYPE", help="the response's Content-Type header")
    apply.add_argument("--previous", metavar="PAGE", help="an earlier body: counters become increases since then")
    apply.add_argument("--dialect", default="auto", metavar="NAME", help="v0, v1 or rust (default: as the page shows)")
    apply.add_argument("--name-style", default="auto", metavar="NAME", help="how names were rewritten (default: auto)")
    for command, run in ((listed, run_list), (show, run_show), (apply, run_apply)):
        for flag, options in everywhere.items():
            command.add_argument(flag, **options)  # type: ignore[arg-type]  # argparse types options one by one
        command.set_defaults(run=run)


def run_list(args: argparse.Namespace) -> int:
    """Prints releases and their maps."""
    maps = _load(args.maps)
    if maps is None:
        return _FAILED
    if args.json:
        print(json.dumps({"maps": list(maps.files), "releases": maps.releases}, indent=2))
        return _DONE
    for file in maps.files:
        print(f"vllm/{file}: {' '.join(release for release, home in maps.releases.items() if home == file)}")
    return _DONE


def run_show(args: argparse.Namespace) -> int:
    """Prints the flat map of a version."""
    maps = _load(args.maps)
    version = None if maps is None else maps.resolve(args.version)
    if maps is None or version is None:
        return _FAILED if maps is None else _fail(_unknown(args.version, maps))
    dialects = [dialect for dialect in version.dialects if args.dialect in {None, dialect.name}]
    if not dialects:
        known = ", ".join(dialect.name for dialect in version.dialects)
        return _fail(f"dialect: got {args.dialect}, expected one of {known}")
    if args.json:
        print(json.dumps(_shown(version, dialects), indent=2))
    else:
        print(*_lines(version, dialects), sep="\n")
    return _DONE


def run_apply(args: argparse.Namespace) -> int:
    """Prints what a page says."""
    from prefix_cache_exporter.engine.apply import apply_page  # noqa: PLC0415  # reading pages takes time to import
    from prefix_cache_exporter.engine.page import PageError  # noqa: PLC0415
    from prefix_cache_exporter.engine.plan import UnknownChoiceError  # noqa: PLC0415

    maps = _load(args.maps)
    if maps is None:
        return _FAILED
    page = args.page
    try:
        bodies = [_body(page)]
        if args.previous:
            page = args.previous
            bodies.append(_body(page))
        page = args.page
        application = apply_page(
            maps,
            args.engine_version,
            *bodies,
            content_type=args.content_type,
            dialect=args.dialect,
            style=args.name_style,
        )
    except OSError as error:
        return _fail(f"{page}: got {(error.strerror or 'an error').lower()}, expected a readable file")
    except PageError as error:
        return _fail(f"{page}: {error}")
    except UnknownChoiceError as error:
        return _fail(str(error))
    if args.json:
        print(json.dumps(application.as_json(), indent=2))
    else:
        print(*_table(application), sep="\n")
    return _DONE


def _load(folders: Iterable[str]) -> MapSet | None:
    from prefix_cache_exporter.documents import DocumentError  # noqa: PLC0415
    from prefix_cache_exporter.engine.maps import load_maps  # noqa: PLC0415

    try:
        return load_maps(folders)
    except DocumentError as error:
        _fail(str(error))
        return None


def _fail(line: str) -> int:
    print(line, file=sys.stderr)
    return _FAILED


def _unknown(version: str, maps: MapSet) -> str:
    return f"version: got {version}, expected a vllm version from {maps.files[0]} on"


def _body(path: str) -> bytes:
    return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()


def _shown(version: VersionMap, dialects: Iterable[DialectMap]) -> dict[str, Any]:
    return {
        "engine_version": version.version,
        "metric_map": version.name,
        "verified": version.verified,
        "dialects": {
            dialect.name: {
                "title": dialect.title,
                "verified": dialect.verified,
                "measures": {name: _plain(entry) for name, entry in dialect.entries.items()},
                "evidence": {name: _plain(entry) for name, entry in dialect.evidence.items()},
                "caveats": {name: _plain(caveat) for name, caveat in dialect.caveats.items()},
                "absent": sorted(dialect.marks.absent),
            }
            for dialect in dialects
        },
    }


def _plain(record: Any) -> dict[str, Any]:
    """A frozen record without what says nothing."""
    values = {name: getattr(record, name) for name in record.__slots__ if name not in {"measure", "id"}}
    return {name: value for name, value in values.items() if value not in (None, (), {}, False, "")}


def _lines(version: VersionMap, dialects: Iterable[DialectMap]) -> Iterable[str]:
    yield f"vllm {version.version}: {version.name}, {'verified' if version.verified else 'unverified'}"
    for dialect in dialects:
        yield ""
        yield f"{dialect.name}: {dialect.title}{'' if dialect.verified else ' (facts not read from a release)'}"
        for name, entry in dialect.entries.items():
            if entry.withheld:
                yield f"  {name:<30} withheld: {entry.withheld}"
                continue
            where = "".join(f" {label}={value}" for label, value in entry.where.items())
            by = f" by {entry.by}" if entry.by else ""
            times = "".join(f" x {factor}" for factor in entry.times)
            gate = f" (only with {entry.gate})" if entry.gate else ""
            source = " + ".join(entry.families) + (f"_{entry.part}" if entry.part else "")
            label = f" label {entry.label}" if entry.label else ""
            yield f"  {name:<30} {source}{where}{label}{by}, {entry.unit}{times}{gate}"
        for caveat in dialect.caveats.values():
            invalid = f"; invalidates {', '.join(caveat.invalidates)}" if caveat.invalidates else ""
            yield f"  caveat {caveat.id}: {caveat.counts} ({caveat.errs}{invalid})"
            for link in caveat.source:
                yield f"    {link}"


def _table(application: Application) -> Iterable[str]:
    answer = application.as_json()
    yield f"vllm {answer['engine_version']}: {answer['metric_map']}, {answer['dialect']}, {answer['state']}"
    yield from (f"  {reason}" for reason in answer["reasons"])
    for name, engine in answer["engines"].items():
        yield f"engine {name}, model {engine['model'] or 'unnamed'}"
        for measure, found in engine["measures"].items():
            yield f"  {measure:<30} {_value(found['value']):>16} {found['unit']}  {found['family']}"
        yield from (f"  {reason}: {tokens} prompt tokens excluded" for reason, tokens in engine["excluded"].items())
    yield from (f"withheld {measure}: {reason}" for measure, reason in answer["withheld"].items())
    yield from (f"caveat {id_}" for id_ in answer["caveats"])
    yield from (f"anomaly {reason}: {count}" for reason, count in answer["anomalies"].items())


def _value(value: float | str | Mapping[str, Any]) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:g}"
    if "buckets" in value:
        return f"{value['count']:,} in {value['sum']:g} s"
    return " ".join(f"{name}={number:g}" for name, number in value.items())
