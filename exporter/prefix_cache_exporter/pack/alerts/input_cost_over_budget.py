"""The input of a request costs more than the business allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.alerts import conditions, dashboards, text
from prefix_cache_exporter.pack.durations import Duration
from prefix_cache_exporter.pack.model import Alert
from prefix_cache_exporter.pack.names import RELEASE
from prefix_cache_exporter.pack.records import baseline, cost

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prefix_cache_exporter.pack.names import Names

NAME = "PrefixCacheInputCostOverBudget"


def alerts(names: Names) -> tuple[Alert, ...]:
    """One rule for all templates, and one for each that has its own budget."""
    budget = names.settings.budget
    own = [
        _alert(names, f"template={queries.quoted(name)}", limit, {"budget": name})
        for name, limit in sorted(budget.templates.items())
    ]
    others = [f"template!={queries.quoted(name)}" for name in sorted(budget.templates)]
    return (_alert(names, ",".join(others), budget.input_cost_per_request, {}), *own)


def _alert(names: Names, templates: str, limit: float, whose: Mapping[str, str]) -> Alert:
    settings = names.settings
    long, currency = settings.windows.long, f'currency="{settings.budget.currency}"'
    mean = queries.select(cost.per_request(names), currency, templates, baseline.ONE_REVISION)
    return Alert(
        name=NAME,
        expr=f"({mean} > {queries.number(limit)})\nand {conditions.enough_requests(names, cost.priced(names))}",
        labels=(*RELEASE, *settings.labels.extra, *cost.CURRENCY),
        severity="warning",
        hold=Duration.parse("30m"),
        keep=Duration.parse("30m"),
        summary="The input cost of a request exceeds its budget.",
        description=(
            f'{text.REVISION} costs {{{{ $value | printf "{text.MONEY}" }}}} {{{{ $labels.currency }}}} of input per'
            f" request ({text.value(cost.input_cost(names), text.MONEY, long.seconds)} over"
            f" {text.value(cost.priced(names), text.TOKENS, long.seconds)} priced requests in {long}); the budget is"
            f" {queries.number(limit)}."
        ),
        dashboard=dashboards.USAGE,
        set_labels=whose,
    )
