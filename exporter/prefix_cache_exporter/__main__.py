from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .cli import run, streams

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        argv: the arguments after the program's name; those of the process by default.

    Returns:
        0 done, 1 the check or run failed, 2 the command line was wrong.
    """
    if argv is None:
        streams.take_streams()
    return run(sys.argv[1:] if argv is None else argv)


if __name__ == "__main__":
    sys.exit(main())
