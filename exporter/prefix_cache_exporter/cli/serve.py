from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.config.model import DEFAULT_PORT
from prefix_cache_exporter.logs import FORMATS, LEVELS

from .say import DONE, USAGE, failed, seconds

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from prefix_cache_exporter.config.model import Config
    from prefix_cache_exporter.documents import DocumentError
    from prefix_cache_exporter.web.server import ListenError

_PLACES = re.compile(r"engines\[\d+\]")
_SUMMARY = "the sidecar: polls engines, follows usage logs, answers /metrics"


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `serve`, the sidecar."""
    parser = subparsers.add_parser(
        "serve",
        help=_SUMMARY,
        description=f"Runs {_SUMMARY}.",
        epilog="docs/CONFIGURATION.md describes the file; PREFIX_CACHE_RELEASE_TEMPLATE, … name the release, too.",
        allow_abbrev=False,
    )
    add_flags(parser)
    parser.set_defaults(run=_run)


def register_check(checks: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `check config FILE`."""
    check = checks.add_parser(
        "config",
        help="a configuration file, and what it names",
        allow_abbrev=False,
        description="Holds a file against the schema.",
    )
    check.add_argument("file", metavar="FILE", type=Path)
    check.set_defaults(run=_check)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `serve`, grouped."""
    from prefix_cache_exporter.cli import version_line  # the package lists this module

    sources = parser.add_argument_group("what to read")
    sources.add_argument(
        "--config.file", dest="config_file", metavar="FILE", type=Path, help="configuration file (YAML)"
    )
    sources.add_argument(
        "--config.check", dest="config_check", action="store_true", help="check the configuration and exit with 0 or 1"
    )
    sources.add_argument(
        "--config.auto-reload-interval",
        dest="watch_seconds",
        metavar="SECONDS",
        type=seconds,
        default=30.0,
        help="how often configuration files are looked at for new content; 0: only on SIGHUP (default: 30)",
    )
    sources.add_argument(
        "--vllm", action="append", default=[], metavar="[NAME=]URL", help="a vLLM server to poll; may be repeated"
    )
    sources.add_argument(
        "--engine-version",
        metavar="VERSION",
        help="version of the servers that --vllm names, where /version does not tell",
    )
    release = parser.add_argument_group("the release in force")
    release.add_argument("--release.file", dest="release_file", metavar="FILE", type=Path, help="release file, watched")
    release.add_argument("--template", metavar="NAME", help="which prompt template")
    release.add_argument("--template-revision", metavar="REVISION", help="its revision")
    web = parser.add_argument_group("web")
    web.add_argument(
        "--web.listen-address",
        dest="listen_address",
        action="append",
        default=[],
        metavar="ADDRESS",
        help=f"`:port`, `host:port` or `[ipv6]:port`; may be repeated (default: :{DEFAULT_PORT}, all interfaces)",
    )
    web.add_argument(
        "--web.telemetry-path", dest="telemetry_path", metavar="PATH", help="where the metrics are (default: /metrics)"
    )
    web.add_argument(
        "--web.config.file",
        dest="web_config_file",
        metavar="FILE",
        type=Path,
        help="TLS, basic authentication and headers, in the format of Prometheus's exporter-toolkit; followed",
    )
    web.add_argument("--web.external-url", dest="external_url", metavar="URL", help="address behind a proxy")
    web.add_argument("--web.route-prefix", dest="route_prefix", metavar="PATH", help="prefix of every path")
    web.add_argument(
        "--web.disable-exporter-metrics",
        dest="runtime_metrics",
        action="store_false",
        help="leave out process and interpreter metrics",
    )
    process = parser.add_argument_group("process")
    process.add_argument("--state.path", dest="state_path", metavar="FILE", type=Path, help="durable state (SQLite)")
    process.add_argument(
        "--shutdown.grace-seconds",
        dest="grace_seconds",
        metavar="SECONDS",
        type=seconds,
        help="how long to go on after SIGTERM while there is something to count (default: 20)",
    )
    process.add_argument("--log.level", dest="log_level", choices=LEVELS, default="info", help="(default: info)")
    process.add_argument("--log.format", dest="log_format", choices=FORMATS, default="logfmt", help="(default: logfmt)")
    process.add_argument("--version", action="version", version=version_line(), help="show the version and exit")


def _flags(args: argparse.Namespace) -> dict[str, Any]:
    """The flags in the shape of a configuration file; relative paths start here and not at that file's folder."""
    from prefix_cache_exporter.serve.settings import engines_of

    sections: dict[str, Mapping[str, Any]] = {
        "web": {
            "listen_address": args.listen_address or None,
            "telemetry_path": args.telemetry_path,
            "config_file": _absolute(args.web_config_file),
            "external_url": args.external_url,
            "route_prefix": args.route_prefix,
        },
        "state": {"path": _absolute(args.state_path)},
        "shutdown": {"grace_seconds": args.grace_seconds},
        "release": {
            "file": _absolute(args.release_file),
            "template": args.template,
            "template_revision": args.template_revision,
        },
    }
    said = {name: {k: v for k, v in section.items() if v is not None} for name, section in sections.items()}
    flags: dict[str, Any] = {name: section for name, section in said.items() if section}
    if args.vllm:
        flags["engines"] = engines_of(args.vllm, args.engine_version)
    return flags


def _absolute(path: Path | None) -> str | None:
    return None if path is None else str(path.absolute())


def _run(args: argparse.Namespace) -> int:
    from prefix_cache_exporter import logs
    from prefix_cache_exporter.cli import revision, version_line  # the package lists this module
    from prefix_cache_exporter.documents import DocumentError
    from prefix_cache_exporter.serve.settings import load_settings
    from prefix_cache_exporter.serve.sidecar import Options, Sidecar
    from prefix_cache_exporter.web.server import ListenError

    if args.engine_version is not None and not args.vllm:
        return failed("command line: --engine-version: got one without a server, expected --vllm beside it", USAGE)
    load = partial(load_settings, args.config_file, _flags(args), os.environ)
    if args.config_check:
        return _checked(load)
    logs.setup(args.log_level, args.log_format)
    options = Options(version_line(), revision(), args.config_file, args.watch_seconds, args.runtime_metrics)
    try:
        sidecar = Sidecar(load, options)
        sidecar.signals.install()
        sidecar.start()
    except DocumentError as error:
        return _refused(error)
    except ListenError as error:
        return failed(_not_listening(error, args))
    sidecar.run()
    return DONE


def _not_listening(error: ListenError, args: argparse.Namespace) -> DocumentError:
    """Which address cannot be listened on, and who named it."""
    from prefix_cache_exporter.documents import DocumentError
    from prefix_cache_exporter.serve.settings import COMMAND_LINE

    by_flag = args.listen_address or args.config_file is None
    file = COMMAND_LINE if by_flag else str(args.config_file)
    place = _named(f"web.listen_address[{error.number}]", file)
    return DocumentError(file, place, f"{error.address}, {error.reason}", "an address of this machine that is free")


def _check(args: argparse.Namespace) -> int:
    from prefix_cache_exporter.serve.settings import load_settings

    return _checked(partial(load_settings, args.file, {}, {}))


def _checked(load: Callable[[], Config]) -> int:
    from prefix_cache_exporter.documents import DocumentError
    from prefix_cache_exporter.serve.rehearsal import rehearse

    try:
        config = load()
        notes = rehearse(config)
    except DocumentError as error:
        return _refused(error)
    print("the configuration is good")
    for note in notes:
        print(f"note: {config.origin}: {_named(note.place, config.origin)}: {note.text}")
    return DONE


def _refused(error: DocumentError) -> int:
    """Says what is wrong with the configuration; whoever wrote flags and no file is told the flag."""
    from prefix_cache_exporter.documents import DocumentError
    from prefix_cache_exporter.serve.settings import COMMAND_LINE

    if error.file != COMMAND_LINE:
        return failed(error)
    said = (
        DocumentError(
            one.file, _named(one.path, one.file), one.got, _PLACES.sub(lambda it: _flag_of(it[0]), one.expected)
        )
        for one in error.each
    )
    return failed("\n".join(map(str, said)), USAGE)


def _named(place: str, file: str) -> str:
    """A place as whoever wrote it knows it: the flag where there is no file."""
    from prefix_cache_exporter.serve.settings import COMMAND_LINE

    return _flag_of(place) if file == COMMAND_LINE else place


def _flag_of(place: str) -> str:
    """The flag that a place of the configuration came from, for people who wrote no file."""
    match = re.fullmatch(r"engines\[(\d+)\](?:\.(\w+))?", place)
    if match:
        number = int(match[1])
        name = "--engine-version" if match[2] == "engine_version" else "--vllm"
        return name if number == 0 or name != "--vllm" else f"--vllm (number {number + 1})"
    top, _, key = place.partition("[")[0].partition(".")
    if top == "release":
        return f"--{key.replace('_', '-')}" if key and key != "file" else "--release.file" if key else "--template"
    return f"--{top}.{key.replace('_', '-')}" if key else place
