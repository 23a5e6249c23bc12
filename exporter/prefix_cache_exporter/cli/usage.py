from __future__ import annotations

import json
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from .say import DONE, USAGE, CommandLineError, failed, of_file, unknown_format

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from prefix_cache_exporter.usage.maps.model import UsageMap
    from prefix_cache_exporter.usage.merge.merger import Merger
    from prefix_cache_exporter.usage.record import Outcome, UsageRecord

_COLUMNS = {
    "model": "model",
    "status": "status",
    "quality": "quality",
    "total_input_tokens": "input",
    "cache_read_tokens": "read",
    "cache_write_tokens": "written",
    "uncached_input_tokens": "uncached",
    "output_tokens": "output",
}
_WIDEST = 40
_WORDS = 3  # the first columns are words, the others numbers


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `usage normalise` and `usage formats`."""
    usage = subparsers.add_parser(
        "usage",
        help="usage logs as records, and the formats that are known",
        description="Looks at usage logs without serving.",
        allow_abbrev=False,
    )
    commands = usage.add_subparsers(dest="usage", metavar="WHAT", required=True)
    normalise = commands.add_parser(
        "normalise",
        help="print the settled records of a log",
        description="Prints one record per settled request of a log: JSON lines, CRI lines or arrays, plain or gzip.",
        allow_abbrev=False,
    )
    normalise.add_argument(
        "--format", required=True, metavar="NAME", help="the log's format; `usage formats` lists them"
    )
    includes_flag(normalise)
    map_flag(normalise)
    normalise.add_argument("--json", action="store_true", help="one JSON object per line")
    normalise.add_argument("file", metavar="FILE", help="the log; - for standard input")
    normalise.set_defaults(run=_normalise)
    formats = commands.add_parser("formats", help="list the known formats", allow_abbrev=False)
    map_flag(formats)
    formats.add_argument("--json", action="store_true", help="one JSON object per line")
    formats.set_defaults(run=_formats)


def includes_flag(parser: argparse._ActionsContainer) -> None:
    """Adds the flag that says what a log's input numbers include."""
    parser.add_argument(
        "--input-includes-cache",
        choices=("true", "false"),
        help="whether the log's input numbers include cached tokens, against the format's own rule",
    )


def map_flag(parser: argparse._ActionsContainer) -> None:
    """Adds the flag that names maps of one's own."""
    parser.add_argument(
        "--map",
        "--maps",
        dest="maps",
        action="append",
        default=[],
        metavar="FILE",
        help="a map of one's own, or a folder of them",
    )


def _normalise(args: argparse.Namespace) -> int:
    from prefix_cache_exporter.usage.record import UsageRecord, as_json

    usage_map = map_for(args, "--format")
    if isinstance(usage_map, int):
        return usage_map
    dropped: Counter[str] = Counter()
    records: list[UsageRecord] = []
    found = 0
    broken: Exception | None = None
    try:
        for outcome in _outcomes(args, usage_map):
            if not isinstance(outcome, UsageRecord):
                dropped[kind_of(outcome)] += 1
                continue
            found += 1
            if args.json:
                print(json.dumps(as_json(outcome), ensure_ascii=False))
            else:
                records.append(outcome)
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:  # what was in front of it is shown all the same
        broken = error
    if not args.json and (records or not broken):
        _table(records)
    print(*(f"{count} {reason}\n" for reason, count in sorted(dropped.items())), sep="", end="", file=sys.stderr)
    if broken:
        return failed(of_log(args.file, broken))
    if dropped and not found:
        print(no_record(args.file, usage_map), file=sys.stderr)
    return DONE


def _formats(args: argparse.Namespace) -> int:
    from prefix_cache_exporter.usage.maps.book import MapBook

    try:
        book = MapBook(args.maps)
    except ValueError as error:
        return failed(error)
    width = max(map(len, book.formats))
    for name in book.formats:
        usage_map = book.get(name)
        if args.json:
            shown = {"format": name, "aliases": usage_map.aliases, "title": usage_map.title, "rule": usage_map.rule}
            print(json.dumps({**shown, "aggregate": usage_map.aggregate}))
        else:
            also = f" (also {', '.join(usage_map.aliases)})" if usage_map.aliases else ""
            print(f"{name:{width}}  {usage_map.title}{also}")
    return DONE


def no_record(file: str, usage_map: UsageMap) -> str:
    """What to say of a log without a single record."""
    return f"{file}: no record in it; is its format {usage_map.format}?"


def of_log(file: str, error: Exception) -> str:
    """What to say of a log that cannot be read."""
    return of_file(file, error) if isinstance(error, OSError) else f"{file}: file: {error}"


def kind_of(outcome: Outcome) -> str:
    """What an outcome counts as."""
    from prefix_cache_exporter.usage.record import Duplicate, Quarantined, Skipped

    if isinstance(outcome, Skipped):
        return f"{outcome.kind}: {outcome.reason}"
    if isinstance(outcome, Quarantined):
        return f"quarantined: {outcome.reason}"
    return "duplicate" if isinstance(outcome, Duplicate) else outcome.quality


def _outcomes(args: argparse.Namespace, usage_map: UsageMap) -> Iterator[Outcome]:
    """What the lines came to; what settles only at the end comes last.

    Raises:
        OSError: where the log cannot be opened.
        UnreadableError: where it is damaged.
    """
    from prefix_cache_exporter.usage.finished import numbered
    from prefix_cache_exporter.usage.merge.merger import outcomes
    from prefix_cache_exporter.usage.normaliser import Normaliser
    from prefix_cache_exporter.usage.record import Skipped

    normaliser, merger = Normaliser(usage_map), merger_for(args, usage_map)
    for _, line in numbered(args.file):
        yield from (Skipped("lost", line),) if isinstance(line, str) else outcomes(merger, normaliser.feed(line), 0.0)
    yield from merger.settle(0.0, everything=True)


def map_for(args: argparse.Namespace, flag: str) -> UsageMap | int:
    """The map that the arguments name; an exit code where there is none, which is said.

    Args:
        args: the command line.
        flag: where it names the format.
    """
    from prefix_cache_exporter.usage.maps.book import MapBook, UnknownFormatError
    from prefix_cache_exporter.usage.maps.files import read_map

    try:
        name = args.format or read_map(args.maps[-1])["format"]
        return MapBook(args.maps).get(name)
    except UnknownFormatError as error:
        return failed(CommandLineError(flag, *unknown_format(error)), USAGE)
    except ValueError as error:
        return failed(error)


def merger_for(args: argparse.Namespace, usage_map: UsageMap) -> Merger:
    """What settles the records of a log that is read once: it holds all that are open until the end."""
    from prefix_cache_exporter.usage.merge.merger import Merger

    override = None if args.input_includes_cache is None else args.input_includes_cache == "true"
    return Merger(usage_map, input_includes_cache=override, open_records=1_000_000)


def _table(records: Iterable[UsageRecord]) -> None:
    rows = [[_cell(getattr(record, name)) for name in _COLUMNS] for record in records]
    titles = list(_COLUMNS.values())
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    for row in (titles, *rows):
        cells = (
            f"{cell:{'<' if at < _WORDS else '>'}{width}}"
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )  # words left, numbers right
        print("  ".join(cells).rstrip())


def _cell(value: Any) -> str:
    return "-" if value is None else str(value)[:_WIDEST]
