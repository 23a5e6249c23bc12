from __future__ import annotations

import json
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from prefix_cache_exporter.usage.maps import UsageMap
    from prefix_cache_exporter.usage.merge import Outcome
    from prefix_cache_exporter.usage.record import UsageRecord

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
    normalise.add_argument(
        "--input-includes-cache",
        choices=("true", "false"),
        help="whether the log's input numbers include cached tokens, against the format's own rule",
    )
    _map_flag(normalise)
    normalise.add_argument("--json", action="store_true", help="one JSON object per line")
    normalise.add_argument("file", metavar="FILE", help="the log; - for standard input")
    normalise.set_defaults(run=_normalise)
    formats = commands.add_parser("formats", help="list the known formats", allow_abbrev=False)
    _map_flag(formats)
    formats.add_argument("--json", action="store_true", help="one JSON object per line")
    formats.set_defaults(run=_formats)


def register_check(checks: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `check log FORMAT FILE`."""
    check = checks.add_parser(
        "log",
        help="a usage log against its format, line by line",
        description="Says of each line of a log what is wrong with it, and what it came to in all.",
        allow_abbrev=False,
    )
    _map_flag(check)
    check.add_argument("--input-includes-cache", choices=("true", "false"), help="as in a source's configuration")
    check.add_argument("format", metavar="FORMAT", help="the log's format, or the file of a map")
    check.add_argument("file", metavar="FILE", help="the log; - for standard input")
    check.set_defaults(run=_check)


def _map_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--map",
        dest="maps",
        action="append",
        default=[],
        metavar="FILE",
        help="a map of one's own, or a folder of them",
    )


def _normalise(args: argparse.Namespace) -> int:
    from prefix_cache_exporter.usage.record import Quarantined, Skipped, UsageRecord, as_json  # noqa: PLC0415  # slow

    usage_map = _map_for(args)
    if usage_map is None:
        return 2
    dropped: Counter[str] = Counter()
    records: list[UsageRecord] = []
    try:
        for _, outcome in _outcomes(args, usage_map):
            if isinstance(outcome, UsageRecord):
                if args.json:
                    print(json.dumps(as_json(outcome), ensure_ascii=False))
                else:
                    records.append(outcome)
            elif isinstance(outcome, Quarantined):
                dropped[f"quarantined: {outcome.reason}"] += 1
            elif isinstance(outcome, Skipped):
                dropped[f"{outcome.kind}: {outcome.reason}"] += 1
            else:
                dropped["duplicate"] += 1
    except (OSError, ValueError) as error:
        return _failed(f"{args.file}: {error}")
    if not args.json:
        _table(records)
    for reason, count in sorted(dropped.items()):
        print(f"{count} {reason}", file=sys.stderr)
    return 0


def _formats(args: argparse.Namespace) -> int:
    from prefix_cache_exporter.usage.maps import MapBook  # noqa: PLC0415  # slow

    try:
        book = MapBook(args.maps)
    except ValueError as error:
        return _failed(str(error))
    width = max(map(len, book.formats))
    for name in book.formats:
        usage_map = book.get(name)
        if args.json:
            shown = {"format": name, "aliases": usage_map.aliases, "title": usage_map.title, "rule": usage_map.rule}
            print(json.dumps({**shown, "aggregate": usage_map.aggregate}))
        else:
            also = f" (also {', '.join(usage_map.aliases)})" if usage_map.aliases else ""
            print(f"{name:{width}}  {usage_map.title}{also}")
    return 0


def _check(args: argparse.Namespace) -> int:
    if args.format.endswith((".yaml", ".yml")):
        args.maps.append(args.format)
        args.format = None
    usage_map = _map_for(args)
    if usage_map is None:
        return 2
    seen: Counter[str] = Counter()
    wrong = 0
    try:
        for place, outcome in _outcomes(args, usage_map):
            kind, trouble = _judged(outcome, usage_map)
            seen[kind] += 1
            if trouble:
                wrong += 1
                print(f"{args.file}: {place}: {trouble}")
    except (OSError, ValueError) as error:
        return _failed(f"{args.file}: {error}")
    print(f"{args.file}: " + (", ".join(f"{count} {what}" for what, count in sorted(seen.items())) or "no lines"))
    if not _records(seen):
        print(f"{args.file}: no record in it; is its format {usage_map.format}?", file=sys.stderr)
    return 1 if wrong or not _records(seen) else 0


def _judged(outcome: Outcome, usage_map: UsageMap) -> tuple[str, str | None]:
    """What an outcome counts as, and what is wrong with it if anything is."""
    from prefix_cache_exporter.usage.record import Duplicate, Quarantined, Skipped  # noqa: PLC0415  # slow

    if isinstance(outcome, Skipped):
        trouble = f"lost, {outcome.detail or outcome.reason}" if outcome.kind == "lost" else None
        return f"{outcome.kind}: {outcome.reason}", trouble
    if isinstance(outcome, Quarantined):
        return "quarantined", f"quarantined, {outcome.reason}"
    if isinstance(outcome, Duplicate):
        return "duplicate", None
    return outcome.quality, _trouble(outcome, usage_map)


def _trouble(record: UsageRecord, usage_map: UsageMap) -> str | None:
    if record.quality == "ambiguous":
        return "whether the input includes cached tokens cannot be told: set input_includes_cache for the source"
    if record.quality == "usage_missing":
        where = " or ".join(map(str, usage_map.usage))
        return f"a success without token counts at {where}" if record.status == "success" else None
    if record.quality == "partial" and record.total_input_tokens is None:
        return f"no input tokens at {' or '.join(map(str, usage_map.tokens.get('input', ())))}"
    return ", ".join(record.anomalies) or None


def _records(seen: Counter[str]) -> int:
    from prefix_cache_exporter.usage.record import QUALITIES  # noqa: PLC0415  # slow

    return sum(seen[quality] for quality in QUALITIES)


def _outcomes(args: argparse.Namespace, usage_map: UsageMap) -> Iterator[tuple[str, Outcome]]:
    """What each line came to, with its place; records that settle only at the end come last.

    Raises:
        OSError: where the log cannot be opened.
        UnreadableError: where it is damaged.
    """
    from prefix_cache_exporter.usage.merge import Merger, outcomes  # noqa: PLC0415  # slow
    from prefix_cache_exporter.usage.normaliser import Normaliser  # noqa: PLC0415

    override = None if args.input_includes_cache is None else args.input_includes_cache == "true"
    normaliser = Normaliser(usage_map)
    merger = Merger(usage_map, input_includes_cache=override, open_records=1_000_000)
    for place, line in _lines(args.file):
        found = [line] if not isinstance(line, bytes) else outcomes(merger, normaliser.feed(line), 0.0)
        yield from ((place, outcome) for outcome in found)
    yield from (("end", outcome) for outcome in merger.settle(0.0, everything=True))


def _lines(path: str) -> Iterator[tuple[str, Any]]:
    from prefix_cache_exporter.usage.finished import pieces  # noqa: PLC0415  # slow
    from prefix_cache_exporter.usage.record import Skipped  # noqa: PLC0415

    number = 0
    for piece in pieces(path):
        for line in piece.lines:
            number += 1
            yield f"record {number}", line
        for reason, count in piece.lost.items():
            yield from ((f"after record {number}", Skipped("lost", reason)) for _ in range(count))


def _map_for(args: argparse.Namespace) -> UsageMap | None:
    from prefix_cache_exporter.usage.maps import MapBook, read_map  # noqa: PLC0415  # slow

    try:
        name = args.format or read_map(args.maps[-1])["format"]
        return MapBook(args.maps).get(name)
    except ValueError as error:
        _failed(str(error))
        return None


def _failed(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return 1


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
