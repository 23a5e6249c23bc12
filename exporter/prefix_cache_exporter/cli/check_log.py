"""`check log`: what became of each line of a usage log, and what the map that reads it never found."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from .say import DONE, FAILED, failed
from .usage import includes_flag, kind_of, map_flag, map_for, merger_for, no_record, of_log

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from prefix_cache_exporter.usage.maps.model import UsageMap
    from prefix_cache_exporter.usage.paths import Path
    from prefix_cache_exporter.usage.record import Outcome

MOST_ALIKE: Final = 10
"""So many lines with one mistake are named, unless every line is asked for."""
MOST_PATHS: Final = 4
"""So many paths are named where nothing was found."""
_NUMBER: Final = re.compile(r"\d+")


class Seen(NamedTuple):
    """What a line came to.

    Attributes:
        place: `line 7`.
        outcome: what it is; None for a part of a record that settles later.
        why: why it has no input tokens, as far as the map's paths tell.
    """

    place: str
    outcome: Outcome | None
    why: str | None


def register_check(checks: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `check log FORMAT FILE`."""
    check = checks.add_parser(
        "log",
        help="a usage log against its format, line by line",
        description="Says of each line of a log what is wrong with it, and what it came to in all.",
        allow_abbrev=False,
    )
    map_flag(check)
    includes_flag(check)
    check.add_argument(
        "--all", action="store_true", help=f"say of every line what became of it, and of more than {MOST_ALIKE} alike"
    )
    check.add_argument("format", metavar="FORMAT", help="the log's format, or the file of a map")
    check.add_argument("file", metavar="FILE", help="the log; - for standard input")
    check.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints what is wrong with lines of a log; fails where anything is, or where there is no record in it."""
    if args.format.endswith((".yaml", ".yml")):
        args.maps.append(args.format)
        args.format = None
    usage_map = map_for(args, "FORMAT")
    if isinstance(usage_map, int):
        return usage_map
    counts: Counter[str] = Counter()
    missing = _Missing(usage_map)
    said = _Said(args.file, every_line=args.all)
    strange: Counter[tuple[Path, ...]] = Counter()
    try:
        for seen in _seen(args, usage_map, strange):
            if seen.outcome is not None:
                counts[kind_of(seen.outcome)] += 1
                missing.look(seen.outcome)
            said.say(seen, usage_map)
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        return failed(of_log(args.file, error))
    said.rest()
    print(f"{args.file}: " + (", ".join(f"{count} {what}" for what, count in sorted(counts.items())) or "no lines"))
    if said.text:
        print(f"{args.file}: where a log holds other text as well, its map says so: text: ignored, or text: prefix")
    for note in (*missing.notes(), *_strange(strange, usage_map)):
        print(f"{args.file}: {note}")
    records = _records(counts)
    if not records:
        failed(no_record(args.file, usage_map))
    return FAILED if said.wrong or not records else DONE


class _Said:
    """Prints what there is to say of lines; of mistakes alike, the first few."""

    def __init__(self, file: str, *, every_line: bool) -> None:
        self._file, self._every_line = file, every_line
        self._alike: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        self.wrong = 0
        self.text = False

    def say(self, seen: Seen, usage_map: UsageMap) -> None:
        from prefix_cache_exporter.usage.trouble import trouble

        found = None if seen.outcome is None else trouble(seen.outcome, usage_map, seen.why)
        if found is None:
            if self._every_line:
                print(f"{self._file}: {seen.place}: {_fate(seen.outcome)}")
            return
        self.wrong += 1
        self.text = self.text or (found.startswith("lost, ") and " text" in found)
        kind = _NUMBER.sub("", found)
        self._alike[kind] += 1
        if self._every_line or self._alike[kind] <= MOST_ALIKE:
            self._first.setdefault(kind, seen.place)
            print(f"{self._file}: {seen.place}: {found}")

    def rest(self) -> None:
        """Says how many lines were not named."""
        for kind, count in self._alike.items():
            if count > MOST_ALIKE and not self._every_line:
                print(f"{self._file}: {count - MOST_ALIKE} more like {self._first[kind]}; --all names them")


class _Missing:
    """Counts what successful requests lack although the map says where it stands: often a misspelt path."""

    def __init__(self, usage_map: UsageMap) -> None:
        spans = {"ttft": usage_map.ttft, "duration": usage_map.duration}
        given = {
            "id": usage_map.id,
            "time": usage_map.time,
            "model": usage_map.model,
            "provider": usage_map.provider_paths,
            "read": usage_map.tokens.get("read", ()),
            **{name: tuple(span.path for span in some if span.path is not None) for name, some in spans.items()},
        }
        self._paths = {name: paths for name, paths in given.items() if paths or name in _NEEDED}
        self._lacking: Counter[str] = Counter()
        self._records = 0

    def look(self, outcome: Outcome) -> None:
        """Takes one outcome into account."""
        from prefix_cache_exporter.usage.record import UsageRecord

        if not isinstance(outcome, UsageRecord) or outcome.status != "success" or outcome.total_input_tokens is None:
            return
        self._records += 1
        for name in self._paths:
            if name == "read" and outcome.anomalies:
                continue  # it may have been left out for that
            if getattr(outcome, _FIELDS.get(name, name)) in {None, "unknown"}:
                self._lacking[name] += 1

    def notes(self) -> Iterator[str]:
        """What to say of it."""
        for name, paths in self._paths.items():
            count = self._lacking[name]
            if count:
                named = _NAMES.get(name, f"a {name}")
                some = f"{count} of {self._records} records without"
                yield f"{some if count < self._records else 'no record has'} {named} at {_listed(paths)}"


_NEEDED: Final = ("provider", "read")
"""What the map should say: prices go by the one, everything by the other."""
_FIELDS: Final = {"read": "cache_read_tokens", "ttft": "ttft_seconds", "duration": "duration_seconds"}
_NAMES: Final = {"id": "an id", "read": "a number of cached tokens", "ttft": "a time to first token"}


def _strange(counts: Counter[tuple[Path, ...]], usage_map: UsageMap) -> Iterator[str]:
    """What to say of statuses in words that the map does not know."""
    for paths, count in counts.items():
        meant = usage_map.default_status
        yield f"{count} with a word at {_listed(paths)} that the map does not know, taken for a {meant}"


def _listed(paths: Sequence[Path]) -> str:
    """The first few of some paths."""
    if not paths:
        return "any path of the map"
    rest = len(paths) - MOST_PATHS
    return " or ".join(map(str, paths[:MOST_PATHS])) + (f" or {rest} more" if rest > 0 else "")


def _fate(outcome: Outcome | None) -> str:
    """What became of a line with which nothing is wrong."""
    from prefix_cache_exporter.usage.record import UsageRecord

    if outcome is None:
        return "part of a record that settles later"
    if not isinstance(outcome, UsageRecord):
        return kind_of(outcome)
    parts = {
        "read": outcome.cache_read_tokens,
        "written": outcome.cache_write_tokens,
        "uncached": outcome.uncached_input_tokens,
    }
    known = " + ".join(f"{count} {name}" for name, count in parts.items() if count is not None)
    total = outcome.total_input_tokens
    if total is None:
        return f"{outcome.quality}, {outcome.status}"
    numbers = f"{total} input{f' = {known}' if known else ''}, {_known(outcome.output_tokens)} output"
    return f"{outcome.quality}, {outcome.status}: {numbers}"


def _known(count: int | None) -> str:
    return "unknown" if count is None else str(count)


def _records(counts: Counter[str]) -> int:
    from prefix_cache_exporter.usage.record import QUALITIES

    return sum(counts[quality] for quality in QUALITIES)


def _seen(args: argparse.Namespace, usage_map: UsageMap, strange: Counter[tuple[Path, ...]]) -> Iterator[Seen]:
    """What each line came to; what settles only at the end comes last, with its last line's place.

    Args:
        args: the command line.
        usage_map: the log's map.
        strange: takes in where statuses stand in words that the map does not know.

    Raises:
        OSError: where the log cannot be opened.
        UnreadableError: where it is damaged.
    """
    from prefix_cache_exporter.usage.finished import numbered
    from prefix_cache_exporter.usage.merge.merger import outcomes
    from prefix_cache_exporter.usage.record import Fragment, Skipped
    from prefix_cache_exporter.usage.whereabouts import Looking

    normaliser, merger = Looking(usage_map), merger_for(args, usage_map)
    places: dict[bytes, tuple[str, str | None]] = {}
    for place, line in numbered(args.file):
        if isinstance(line, str):
            yield Seen(place, Skipped("lost", line), None)
            continue
        for item, why in normaliser.look(line):
            found = outcomes(merger, (item,), 0.0)
            yield from (Seen(place, outcome, why) for outcome in found)
            if not isinstance(item, Fragment):
                continue
            if found and item.key is not None:
                places.pop(item.key, None)
            elif not found and item.context is None:
                yield Seen(place, None, None)
                if merger.touched is not None:
                    places[merger.touched] = place, why
    still = [places.get(key, ("end", None)) for key in merger.open_keys]
    settled = merger.settle(0.0, everything=True)
    yield from (Seen(place, outcome, why) for (place, why), outcome in zip(still, settled, strict=True))
    strange.update(normaliser.strange)
