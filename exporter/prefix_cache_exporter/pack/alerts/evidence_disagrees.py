"""What the engine counted and what its responses told are not the same reuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.alerts import conditions, dashboards, text
from prefix_cache_exporter.pack.durations import Duration
from prefix_cache_exporter.pack.model import Alert
from prefix_cache_exporter.pack.records import evidence

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.names import Names

NAME = "PrefixCacheEvidenceDisagrees"


def alerts(names: Names) -> tuple[Alert, ...]:
    """Both planes over the long window, at the labels in which they are the same traffic."""
    settings = names.settings
    long = settings.windows.long
    engine, usage = (evidence.ratio(names, plane) for plane in conditions.PLANES)
    # The floor is for the short window; as much is asked of the long one, so that a quiet hour says nothing.
    floors = "\n".join(
        f"and ({evidence.tokens(names, plane, 'denominator')} * {queries.number(long.seconds)}"
        f" >= {queries.number(settings.floors.prompt_tokens)})"
        for plane in conditions.PLANES
    )

    def side(plane: str) -> str:
        sums = [
            text.value(evidence.tokens(names, plane, part), text.TOKENS, long.seconds)
            for part in ("numerator", "denominator")
        ]
        ratio = text.value(evidence.ratio(names, plane), text.PERCENT)
        return f"the {plane} plane {ratio} ({sums[0]} cached of {sums[1]} prompt tokens)"

    about = ", ".join(f"{label} {text.label(label)}" for label in settings.evidence_join)
    return (
        Alert(
            name=NAME,
            expr=f"(abs({engine} - {usage}) > {queries.number(settings.thresholds.disagreement)})\n{floors}",
            labels=names.labels("evidence"),
            severity="warning",
            hold=Duration.parse("30m"),
            keep=Duration.parse("15m"),
            summary="Engine and usage records disagree about the same traffic.",
            description=(
                f"For {about}, the population hit ratios over {long} differ by {text.PERCENT_VALUE}:"
                f" {side('engine')}, {side('usage')}."
            ),
            dashboard=dashboards.OVERVIEW,
        ),
    )
