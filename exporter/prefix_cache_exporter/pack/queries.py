"""A small builder of PromQL: the shapes that are right are easy to write, the others cannot be written.

Numerator and denominator are summed first and divided last, a denominator is always guarded, a counter is read only
through a rate. Every selector carries the pack file's matchers.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prefix_cache_exporter.measures import Family

    from .durations import Duration
    from .model import Series

_QUOTED = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`""")
_COMPOUND = re.compile(r"\s(?:and|or|unless|[-+*/<>]|[<>=!]=)\s")


def number(value: float) -> str:
    """A number as PromQL and people read it: no exponent, no trailing `.0`."""
    return f"{Decimal(f'{value:.12g}'):f}"


def quoted(value: str) -> str:
    """A label value as a PromQL string."""
    return json.dumps(value, ensure_ascii=False)


def select(name: str | Series, *matchers: str) -> str:
    """A selector; empty matchers are left out."""
    inside = ",".join(filter(None, matchers))
    return f"{name}{{{inside}}}" if inside else str(name)


def rate(family: Family, window: Duration, *matchers: str, part: str = "") -> str:
    """Per-second increase of a counter, or of a histogram's `part` (`_sum`, `_count`, `_bucket`)."""
    name = f"{family.name}{part}" if part else family.series_name
    return f"rate({select(name, *matchers)}[{window}])"


def by(operation: str, labels: Iterable[str], expr: str) -> str:
    """An aggregation that keeps exactly these labels."""
    return f"{operation} by ({', '.join(labels)}) ({expr})"


def total(labels: Iterable[str], expr: str) -> str:
    """The sum over pods."""
    return by("sum", labels, expr)


def ratio(numerator: str, denominator: str) -> str:
    """A quotient that is absent, never NaN and never 0, where nothing is in the denominator."""
    return f"{grouped(numerator)} / ({grouped(denominator)} > 0)"


def either(*parts: str) -> str:
    """The first of several that has a value, label set by label set."""
    return "\nor\n".join(map(grouped, parts))


def known_sum(left: str, right: str) -> str:
    """A sum in which a side that was never counted is 0 as long as the other was."""
    return f"{grouped(left)} + ({grouped(right)} or {grouped(left)} * 0)"


def grouped(expr: str) -> str:
    """The expression, in parentheses where an operator stands at its top level."""
    depth, flat = 0, ""
    for letter in _QUOTED.sub('""', expr):
        if letter in "({[":
            depth += 1
        elif letter in ")}]":
            depth -= 1
        elif not depth:
            flat += letter
    return f"({expr})" if _COMPOUND.search(flat) else expr
