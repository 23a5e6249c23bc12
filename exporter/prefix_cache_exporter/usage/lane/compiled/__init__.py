"""What is done to every plain line, in C: built where a compiler is found (`hatch_build.py`), done without elsewhere.

Nothing here can do what Python beside it cannot: `choice.py` takes either, and tests hold both to the same.
"""

from __future__ import annotations

try:
    from . import _adding as adding
    from . import _recent as recent

    BUILT = True
except ImportError:  # there was no compiler where this was installed
    BUILT = False

__all__ = ["BUILT", "adding", "recent"]
