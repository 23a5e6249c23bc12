"""`python -m benchmarks [NAME…] [--json]`: measures, and says which promises are kept. Exit status 1 if one is not."""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import sys
from typing import TYPE_CHECKING

from benchmarks.figure import Figure, table

if TYPE_CHECKING:
    from collections.abc import Iterator

BENCHES = {
    "poll": "one poll of a real page against prometheus-client's text parser",
    "answer": "answering /metrics",
    "start": "from the command to the first answer",
    "memory": "resident memory over thousands of polls",
    "usage_ingest": "usage lines into the ledger, against mtail and a bare msgspec loop; memory with a million tenants",
    "simulator": "blocks per second through the engine simulator",
    "usage_report": "report over a long log against duckdb, and its memory",
    "rules_fleet": "evaluating all rules over a fleet of pods",
}
"""Modules of this package, each with `figures(quick) -> Iterator[Figure]`."""


def main(arguments: list[str] | None = None) -> int:
    """Runs what is asked for, all by default."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    listed = "; ".join(f"{name}: {what}" for name, what in BENCHES.items())
    parser.add_argument("names", nargs="*", metavar="NAME", help=listed)
    parser.add_argument("--json", action="store_true", help="print machine-readable figures")
    parser.add_argument("--quick", action="store_true", help="a small setting that proves only that it runs")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHES]
    if unknown:
        parser.error(f"got {unknown[0]}, expected some of {', '.join(BENCHES)}")
    figures = list(_measure(options.names or list(BENCHES), quick=options.quick))
    if options.json:
        machine = {"python": platform.python_version(), "machine": platform.machine()}
        print(json.dumps({**machine, "figures": [figure.as_json() for figure in figures]}, indent=1))
    else:
        print(table(figures))
    return int(any(figure.kept is False for figure in figures) and not options.quick)


def _measure(names: list[str], *, quick: bool) -> Iterator[Figure]:
    for name in names:
        print(f"{name}: {BENCHES[name]} …", file=sys.stderr, flush=True)
        yield from importlib.import_module(f"benchmarks.{name}").figures(quick=quick)


if __name__ == "__main__":
    sys.exit(main())
