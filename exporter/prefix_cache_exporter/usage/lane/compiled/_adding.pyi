from types import MemberDescriptorType
from typing import Any, TypeAlias

# From a decoded line to a member of it: a slot of a struct in each step.
Way: TypeAlias = tuple[MemberDescriptorType, ...]

# What `sums.Totals` is, with 64-bit numbers.
class Totals: ...

# Adds lines of one shape to the sums of their words, as the loop of `narrow.py` does, where nothing else is to be done.
class Adder:
    # words: members that tell lines apart, in order.
    # zeros: counts that must be 0.
    # ttls, parts: times to live and counts of what was written for them; the last time to live is of what is left over.
    # input, output, reasoning (beside the output), read, write, total, uncached: counts; None where lines have none.
    # time: seconds since 1970, a float, or the text of a moment.
    # exclusive: whether the input is without what was read and written.
    # TypeError: a way that cannot be gone (too long, not of structs), or too many of them.
    def __init__(
        self,
        *,
        words: tuple[Way, ...],
        zeros: tuple[Way, ...],
        ttls: tuple[str, ...],
        parts: tuple[Way, ...],
        input: Way,  # noqa: A002  # a role's name, as in maps
        output: Way,
        reasoning: Way | None,
        read: Way | None,
        write: Way | None,
        total: Way | None,
        uncached: Way | None,
        time: Way | None,
        exclusive: bool,
    ) -> None: ...
    # known: sums by words, a dictionary for each word within that of the word before.
    # times: `first`, `last`, `low` and `high` of a `sums.Times`.
    # Gives the lines that are left, in order; `first` and `last` anew; the earliest and the latest time that suited its
    # sums only, or inf and -inf.
    def add(
        self, lines: list[Any], known: dict[Any, Any], times: tuple[float, float, float, float], /
    ) -> tuple[list[Any], float, float, float, float]: ...

# The hashes of a member of all lines, as native 64-bit numbers one after the other. TypeError: a line lacks it.
def hashes(lines: list[Any], way: Way, /) -> bytes: ...
