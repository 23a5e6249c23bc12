"""The command line: one module per command, put together from the list below."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from prefix_cache_exporter import __version__

from .say import DONE, FAILED, failed
from .streams import OutputError, leave_output

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = (
    "serve",
    "check",
    "maps",
    "usage",
    "report",
    "pack",
    "demo",
)
"""Modules of this package, in the order that `--help` lists them.

Each has `register(subparsers)`, which adds a parser and sets its default `run`, a function from the parsed arguments
to an exit code. What is slow to import is imported inside `run`, so that `--help` and `check` answer at once.
"""
DEFAULT = "serve"
"""The command when the first argument is absent or a flag, as every Prometheus exporter starts."""


def revision() -> str:
    """The source revision that whoever built the program says it was made from, as images do."""
    return os.environ.get("PREFIX_CACHE_EXPORTER_REVISION", "unknown")


def version_line() -> str:
    """What `--version` prints: version, the revision it was built from where known, and the runtime."""
    return f"prefix-cache-exporter {__version__} (revision {revision()}, Python {platform.python_version()})"


def parser(command: str | None = None) -> argparse.ArgumentParser:
    """The parser of all commands, or of one: to run it, the others need not be imported."""
    top = argparse.ArgumentParser(
        prog="prefix-cache-exporter",
        description="Prompt-prefix reuse of LLM services, as counters whose ratios name both sides.",
        epilog=f"Without a command, `{DEFAULT}` runs; its flags are in `prefix-cache-exporter {DEFAULT} --help`. "
        "Exit codes: 0 done; 1 a check, a file or the run failed; 2 the command line was wrong.",
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=version_line())
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS if command is None else (command,):
        import_module(f".{name}", __name__).register(commands)
    return top


def run(argv: Sequence[str]) -> int:
    """Parses the arguments and runs the command they name; returns the exit code."""
    code = DONE
    try:
        code = _run(_with_default(argv))
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:  # `… | head` is not an error of ours
        leave_output()
    except OutputError as error:
        leave_output()
        return failed(error)
    except KeyboardInterrupt:
        return FAILED
    return code


def _run(words: Sequence[str]) -> int:
    try:
        args = parser(words[0] if words[0] in COMMANDS else None).parse_args(words)
    except SystemExit as end:  # argparse has printed help, the version or what was wrong
        return end.code if isinstance(end.code, int) else DONE
    return int(args.run(args))


def _with_default(argv: Sequence[str]) -> list[str]:
    first = argv[0] if argv else None
    own = first is not None and (not first.startswith("-") or first in {"-h", "--help", "--version"})
    return list(argv) if own else [DEFAULT, *argv]
