"""Which additive rule holds of a request's numbers: the map's own, unless the reported total agrees with another."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from prefix_cache_exporter.usage.maps.model import UsageMap
    from prefix_cache_exporter.usage.record import Fragment

INCLUSIVE, EXCLUSIVE, WRITE_OUTSIDE, BY_TOTAL = "inclusive", "exclusive", "write_outside", "by_total"


class Fit(NamedTuple):
    """How the reported total agrees with each rule, and which of the optional numbers it holds."""

    known: bool
    inclusive: bool
    exclusive: bool
    write_outside: bool
    cached: int
    written: int
    input: int
    extra: int
    output: int | None


def fit_total(f: Fragment, usage_map: UsageMap, rule: str, reads: int, write: int) -> Fit:
    """Tries the readings of reasoning and tool tokens: the rule's own fit, any fit, the usual one."""
    base, output = f.input or 0, f.output
    more = f.extra_output or 0
    reasoning = f.reasoning or 0
    outsides = (
        (usage_map.reasoning_outside, not usage_map.reasoning_outside) if reasoning else (usage_map.reasoning_outside,)
    )
    extras = (f.extra_input, 0) if f.extra_input else (0,)
    reported = None if (usage_map.total_ignored if f.total_ignored is None else f.total_ignored) else f.total
    best, best_rank = None, 3
    for extra in extras:
        for outside in outsides:
            outs = (
                None
                if output is None and not (outside and reasoning)
                else (output or 0) + (reasoning if outside else 0) + more
            )
            left = None if reported is None else reported - (outs or 0)
            total = base + extra
            inclusive, exclusive = left == total, left == total + reads + write
            beside = left == total + write
            # What a total leaves to an output that nobody told proves nothing.
            known = left is not None and (outs is not None or inclusive or exclusive or left < total)
            fit = Fit(known, inclusive, exclusive, beside, reads, write, total, extra, outs)
            rank = 0 if (exclusive if rule == EXCLUSIVE else inclusive) else 1 if inclusive or exclusive else 2
            if best is None or rank < best_rank:
                best, best_rank = fit, rank
    assert best is not None  # noqa: S101  # for mypy: there is always a first reading
    return best


def choose(  # noqa: PLR0911  # one line per case
    rule: str, fit: Fit, usage_map: UsageMap, gateway: bool
) -> tuple[str, str, tuple[str, ...]]:
    """The rule to apply, the quality that follows, and what was odd."""
    cached = fit.cached + fit.written
    only_inclusive = fit.known and fit.inclusive and not fit.exclusive
    only_exclusive = fit.known and fit.exclusive and not fit.inclusive
    neither = fit.known and not fit.inclusive and not fit.exclusive
    odd = ("sum_ne_total",) if neither else ()
    if rule == BY_TOTAL:
        return _by_total(fit, only_inclusive, only_exclusive, usage_map)
    if rule == EXCLUSIVE:
        if only_inclusive and cached <= fit.input:
            return INCLUSIVE, "derived", ("sum_ne_total",)
        odd = ("sum_ne_total",) if neither or only_inclusive else ()
        return EXCLUSIVE, "anomaly" if odd else "ok", odd
    if cached <= fit.input:
        if only_exclusive:
            return EXCLUSIVE, "derived", ("sum_ne_total",)
        if usage_map.write_outside and neither and fit.write_outside:
            return WRITE_OUTSIDE, "derived", ("sum_ne_total",)
        return INCLUSIVE, "anomaly" if odd else "ok", odd
    if usage_map.write_outside and fit.cached <= fit.input and not only_exclusive:
        odd = odd if not fit.write_outside else ()
        return WRITE_OUTSIDE, "anomaly" if odd else "derived", ("cache_gt_input", *odd)
    if only_exclusive or gateway:
        return EXCLUSIVE, "anomaly" if odd else "derived", ("cache_gt_input", *odd)
    return INCLUSIVE, "anomaly", ("cache_gt_input",)


def _by_total(
    fit: Fit, only_inclusive: bool, only_exclusive: bool, usage_map: UsageMap
) -> tuple[str, str, tuple[str, ...]]:
    cached = fit.cached + fit.written
    if only_exclusive:
        return EXCLUSIVE, "ok", ()
    # A total that fits neither says that numbers are missing from those that are read, or stand among them twice.
    odd = ("sum_ne_total",) if fit.known and not fit.inclusive else ()
    if not cached:
        return INCLUSIVE, "anomaly" if odd else "ok", odd
    if cached > fit.input:
        quality = "anomaly" if odd else "derived" if only_inclusive else "ok"
        return EXCLUSIVE, quality, ("cache_gt_input",) if only_inclusive else odd
    if only_inclusive:
        return INCLUSIVE, "derived", ("sum_ne_total",) if usage_map.otherwise == "inclusive" else ()
    if usage_map.otherwise == "inclusive":
        return INCLUSIVE, "anomaly" if odd else "derived", ("sum_ne_total",)
    return BY_TOTAL, "ambiguous", ()
