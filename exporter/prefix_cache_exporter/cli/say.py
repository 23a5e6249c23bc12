"""What every command says when something is wrong: `error: ` and what it is, on standard error."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

from prefix_cache_exporter.mistakes import printable

if TYPE_CHECKING:
    from prefix_cache_exporter.usage.maps.book import UnknownFormatError

DONE, FAILED, USAGE = 0, 1, 2
"""Exit codes: done; a check, a file or the run failed; the command line was wrong."""


def failed(error: object, code: int = FAILED) -> int:
    """Says what is wrong, one `error: ` a line, and returns the exit code."""
    for line in str(error).split("\n"):
        print(f"error: {printable(line)}", file=sys.stderr)
    return code


def of_file(path: object, error: OSError, expected: str = "a readable file") -> str:
    """What the system refused to do with a file, worded like every other mistake."""
    return printable(f"{path}: file: got {(error.strerror or 'an error').lower()}, expected {expected}")


class CommandLineError(ValueError):
    """A flag that makes no sense beside the others, or whose value is no known word."""

    def __init__(self, flag: str, got: str, expected: str) -> None:
        super().__init__(printable(f"command line: {flag}: got {got}, expected {expected}"))


def unknown_format(error: UnknownFormatError) -> tuple[str, str]:
    """What was asked for instead of a usage format, and what was expected: the names that look like it."""
    return error.format, " or ".join(error.near) or "one that `usage formats` lists"


def seconds(text: str) -> float:
    """A flag's value that is a time span.

    Raises:
        ValueError: where it is no finite number of seconds from 0 on; argparse words it.
    """
    value = float(text)
    if not 0 <= value < math.inf:
        raise ValueError(text)
    return value


def tokens(text: str) -> int:
    """A flag's value that is a number of tokens, or of other things of which there must be one.

    Raises:
        ValueError: where it is no whole number from 1 on.
    """
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


def share(text: str) -> float:
    """A flag's value that is a share of something.

    Raises:
        ValueError: where it is not from 0 to below 1.
    """
    value = float(text)
    if not 0 <= value < 1:
        raise ValueError(text)
    return value


seconds.__name__, tokens.__name__ = "number of seconds", "whole number above 0"  # argparse says "invalid … value"
share.__name__ = "share from 0 to below 1"
