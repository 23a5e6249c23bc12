"""`maps`: what the exporter knows of each vLLM release, and what it makes of a page."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .maps_text import applied, flat, listed
from .say import DONE, FAILED, USAGE, failed, of_file

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from prefix_cache_exporter.engine.apply import Application
    from prefix_cache_exporter.engine.maps import MapSet
    from prefix_cache_exporter.engine.records import DialectMap, VersionMap

_STDIN = "-"
_OWN_MAPS: dict[str, Any] = {
    "action": "append",
    "default": [],
    "metavar": "FOLDER",
    "help": "a folder of own metric maps; may repeat",
}


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `maps list`, `maps show` and `maps apply`."""
    maps = subparsers.add_parser(
        "maps",
        help="show the metric maps, or read a page through one",
        description="Metric maps say what each vLLM release exposes and what it means.",
        allow_abbrev=False,
    )
    commands = maps.add_subparsers(dest="maps", metavar="WHAT", required=True)
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
    _page_flags(apply)
    apply.add_argument("--previous", metavar="PAGE", help="an earlier body: counters become increases since then")
    for command, run in ((listed, run_list), (show, run_show), (apply, run_apply)):
        command.add_argument("--maps", **_OWN_MAPS)
        command.add_argument("--json", action="store_true", help="print JSON")
        command.set_defaults(run=run)


def register_check(checks: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `check maps FOLDER` and `check page PAGE`."""
    maps = checks.add_parser(
        "maps",
        help="a folder of own metric and usage maps",
        description="Holds the maps of a folder, `vllm/*.yaml` and `usage/*.yaml` in it, against their schemas and "
        "against the shipped maps that they stand on.",
        allow_abbrev=False,
    )
    maps.add_argument("folder", metavar="FOLDER", type=Path, help="as configuration names it, or one usage map")
    maps.set_defaults(run=check_maps)
    page = checks.add_parser(
        "page",
        help="a recorded page against the map of its version",
        description="Says whether a page is what the map of its version says, and what it does not show; fails where "
        "its numbers would not be trusted.",
        allow_abbrev=False,
    )
    _page_flags(page)
    page.add_argument("--maps", **_OWN_MAPS)
    page.set_defaults(run=check_page)


def _page_flags(command: argparse.ArgumentParser) -> None:
    command.add_argument("page", metavar="PAGE", help="a /metrics body; - reads standard input")
    command.add_argument("--engine-version", required=True, metavar="VERSION", help="as the server's /version says")
    command.add_argument("--content-type", metavar="TYPE", help="the response's Content-Type header")
    command.add_argument(
        "--dialect", default="auto", metavar="NAME", help="v0, v1 or rust (default: as the page shows)"
    )
    command.add_argument(
        "--name-style", default="auto", metavar="NAME", help="how names were rewritten (default: auto)"
    )


def run_list(args: argparse.Namespace) -> int:
    """Prints releases and their maps."""
    maps = _load(args.maps)
    if maps is None:
        return FAILED
    if args.json:
        print(json.dumps({"maps": list(maps.files), "releases": maps.releases}, indent=2))
        return DONE
    print(*listed(maps), sep="\n")
    return DONE


def run_show(args: argparse.Namespace) -> int:
    """Prints the flat map of a version."""
    from prefix_cache_exporter.engine.records import MEASURES

    maps = _load(args.maps)
    version = None if maps is None else maps.resolve(args.version)
    if maps is None or version is None:
        return FAILED if maps is None else failed(_unknown("VERSION", args.version, maps), USAGE)
    dialects = [dialect for dialect in version.dialects if args.dialect in {None, dialect.name}]
    if not dialects:
        known = ", ".join(dialect.name for dialect in version.dialects)
        return failed(f"command line: --dialect: got {args.dialect}, expected one of {known}", USAGE)
    if args.json:
        print(json.dumps(_shown(version, dialects), indent=2))
    else:
        print(*flat(version, dialects, MEASURES), sep="\n")
    return DONE


def run_apply(args: argparse.Namespace) -> int:
    """Prints what a page says."""
    maps = _load(args.maps)
    if maps is None:
        return FAILED
    application = _applied(maps, args, args.previous)
    if isinstance(application, int):
        return application
    if args.json:
        print(json.dumps(application.as_json(), indent=2))
    else:
        print(*applied(application, args.previous or "the engine's start"), sep="\n")
    return DONE


def check_maps(args: argparse.Namespace) -> int:
    """Loads every map of a folder."""
    from prefix_cache_exporter.config.checks import check_map_folder
    from prefix_cache_exporter.config.model import MapSettings
    from prefix_cache_exporter.documents import DocumentError
    from prefix_cache_exporter.engine.maps import load_maps
    from prefix_cache_exporter.usage.maps.book import MapBook

    settings = MapSettings(folders=(args.folder,))
    try:
        if args.folder.is_file():
            known = len(MapBook([args.folder]).formats)
            print(f"{args.folder}: ok, a usage map; {known} with the shipped ones")
            return DONE
        check_map_folder(args.folder, str(args.folder), "folder")
        engine, usage = load_maps(settings.of("vllm")), MapBook(settings.of("usage"))
        for version in engine.files:
            engine.resolve(version)
    except DocumentError as error:
        return failed(error)
    own = ", ".join(f"{len(list((args.folder / kind).glob('*.y*ml')))} of {kind}" for kind in ("vllm", "usage"))
    print(f"{args.folder}: ok, {own}; {len(engine.files)} and {len(usage.formats)} with the shipped ones")
    return DONE


def check_page(args: argparse.Namespace) -> int:
    """Says whether the numbers of a page would be trusted."""
    maps = _load(args.maps)
    if maps is None:
        return FAILED
    application = _applied(maps, args)
    if isinstance(application, int):
        return application
    answer = application.as_json()
    if answer["state"] not in {"verified", "unverified"}:
        if maps.resolve(args.engine_version) is None:
            return failed(_unknown("--engine-version", args.engine_version, maps), USAGE)
        said = f"got {'; '.join(answer['reasons'])}, expected a page as {answer['metric_map']} describes it"
        return failed(f"{args.page}: {answer['state']}: {said}")
    print(f"{args.page}: {answer['state']} as {answer['dialect']} of vllm {answer['engine_version']}")
    for measure, reason in answer["withheld"].items():
        print(f"withheld {measure}: {reason}")
    return DONE


def _applied(maps: MapSet, args: argparse.Namespace, previous: str | None = None) -> Application | int:
    """The page that the arguments name, read; an exit code where it could not be, which is said."""
    from prefix_cache_exporter.engine.apply import apply_readings, read_body
    from prefix_cache_exporter.engine.page import PageError
    from prefix_cache_exporter.engine.plan import UnknownChoiceError

    if args.page == previous == _STDIN:
        return failed("command line: --previous: got standard input, expected another page than PAGE", USAGE)
    choices = {"content_type": args.content_type, "dialect": args.dialect, "style": args.name_style}
    readings = []
    for path in (args.page,) if previous is None else (args.page, previous):
        try:
            readings.append(read_body(maps, args.engine_version, _body(path), **choices))
        except OSError as error:
            return failed(of_file(path, error))
        except PageError as error:
            return failed(f"{path}: page: got {error.detail} ({error.reason}), expected one whole page of metrics")
        except UnknownChoiceError as error:
            flag = f"--{error.what.replace(' ', '-')}"
            known = ", ".join(("auto", *error.expected))
            return failed(f"command line: {flag}: got {error.got}, expected one of {known}", USAGE)
    return apply_readings(args.engine_version, *readings)


def _load(folders: Iterable[str]) -> MapSet | None:
    from prefix_cache_exporter.documents import DocumentError
    from prefix_cache_exporter.engine.maps import load_maps

    try:
        return load_maps(folders)
    except DocumentError as error:
        failed(error)
        return None


def _unknown(flag: str, version: str, maps: MapSet) -> str:
    return f"command line: {flag}: got {version or 'nothing'}, expected a vllm version from {maps.files[0]} on"


def _body(path: str) -> bytes:
    return sys.stdin.buffer.read() if path == _STDIN else Path(path).read_bytes()


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
