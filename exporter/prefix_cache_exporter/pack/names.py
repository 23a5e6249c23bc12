"""Names and labels of recorded series: `level:measure:operation`, both sides in a ratio's name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from prefix_cache_exporter import measures

from .model import Series

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prefix_cache_exporter.measures import Family, Ratio

    from .durations import Duration
    from .model import SeriesKind
    from .settings import Settings

Level = Literal[
    "job", "source", "model", "template", "prompt_band", "template_revision", "namespace", "evidence", "model_weak_hash"
]
MODEL = ("source", "provider", "model")
TEMPLATE = (*MODEL, "template")
RELEASE = (*TEMPLATE, "template_revision")
_LEVELS: dict[str, tuple[str, ...]] = {
    "job": ("job",),
    "source": ("source",),
    "model": MODEL,
    "template": TEMPLATE,
    "prompt_band": (*TEMPLATE, "prompt_band"),
    "template_revision": RELEASE,
    "namespace": (*RELEASE, "namespace"),
}
KEPT = ("currency", "component", "tier")
"""Labels over which nothing may be summed silently; a series that has them says so in its level."""


class Names:
    """Names series for one pack file."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def labels(self, level: str) -> tuple[str, ...]:
        """Labels of a level, with the target labels that the pack file asks for."""
        base = self.settings.evidence_join if level == "evidence" else _LEVELS[level]
        return tuple(dict.fromkeys((*base, *self.settings.labels.extra)))

    def series(
        self, level: str, measure: str, operation: str, kind: SeriesKind = "level", kept: Sequence[str] = ()
    ) -> Series:
        """Any series: `kept` labels follow the level's own, in its name and in its labels."""
        return Series(":".join(("_".join((level, *kept)), measure, operation)), (*self.labels(level), *kept), kind)

    def rate(
        self,
        family: Family,
        window: Duration,
        *,
        level: str = "template_revision",
        part: str = "",
        kept: Sequence[str] | None = None,
    ) -> Series:
        """Per-second mean of a counter (or of a histogram's `_sum` or `_count`) over a window, summed over pods."""
        labels = kept if kept is not None else kept_labels(family)
        return self.series(level, f"{family.name}{part}", f"rate{window}", "rate", labels)

    def ratio(self, ratio: Ratio, window: Duration, *, level: str = "template_revision", suffix: str = "") -> Series:
        """A ratio over a window; absent while idle. `suffix` tells variants apart (`_qualified`, `_settled`)."""
        kept = [label for label in ratio_kept(ratio) if label in KEPT]
        return self.series(level, ratio_measure(ratio), f"ratio_rate{window}{suffix}", "ratio", kept)

    def of_ratio(self, ratio: Ratio, operation: str, *, level: str = "template_revision") -> Series:
        """What is derived from a ratio over time: its median, its baseline, what is expected of it."""
        return self.series(level, ratio_measure(ratio), operation, "ratio")


def families(plane: str) -> dict[str, Family]:
    """The catalogue of one plane by measure id."""
    return dict(measures.ENGINE if plane == "engine" else measures.USAGE)


def kept_labels(family: Family) -> tuple[str, ...]:
    """Labels of a family that its recorded rate keeps beyond those of the level."""
    return tuple(label for label in family.labels if label in KEPT)


def ratio_kept(ratio: Ratio) -> tuple[str, ...]:
    """Labels that both sides of a ratio have and over which it may not be summed: currencies."""
    known = families(ratio.plane)
    sides = [set(kept_labels(known[id_])) for id_ in (*ratio.numerator, *ratio.denominator)]
    return tuple(label for label in KEPT if all(label in side for side in sides))


def ratio_measure(ratio: Ratio) -> str:
    """The middle of a ratio's name: numerator `_per_` denominator."""
    known, prefix = families(ratio.plane), f"prefix_cache_{ratio.plane}_"
    sides = (
        "_plus_".join(known[id_].name.removeprefix(prefix) for id_ in side)
        for side in (ratio.numerator, ratio.denominator)
    )
    return prefix + "_per_".join(sides)


def ratio_named(id_: str) -> Ratio:
    """The catalogue's ratio of this id."""
    return next(ratio for ratio in measures.RATIOS if ratio.id == id_)
