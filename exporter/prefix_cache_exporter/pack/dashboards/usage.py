"""Usage and cost: what do requests reuse, what does it cost, and how much of it is known?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.measures import USAGE
from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.alerts import dashboards as uids

from . import panels
from .board import Question, board
from .layout import Cell, Section
from .panels import BAD, GOOD, WARN, Column, Line
from .reading import Reader, hourly, ratio_of, summed
from .variables import release_variables

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.names import Names

QUESTION = Question(
    uids.USAGE, "Usage and cost", "What do requests reuse, what does it cost, and how much of it is known?", hours=24
)
_HOUR = " * 3600"
_COMPONENTS = "component"


def make(names: Names) -> str:
    """The dashboard."""
    reader = Reader(names)
    sections = (
        Section("How much is known", _coverage(reader)),
        Section("Tokens", _tokens(reader)),
        Section("Cost", _cost(reader)),
        Section("Latency by prompt length and cache state", _latency(reader)),
        Section("Outcomes", _outcomes(reader)),
    )
    return board(names, QUESTION, release_variables(names, USAGE["requests"]), sections)


def _coverage(reader: Reader) -> tuple[Cell, ...]:
    steps = ((None, BAD), (0.5, WARN), (0.9, GOOD))
    ids = ("usage_request_coverage", "usage_token_coverage", "usage_eligible_coverage")
    tiles = [Cell(panels.ratio_tile(ratio_of(id_), reader.sides(id_), steps), 8, 4) for id_ in ids]
    recorded = reader.names.rate(USAGE["quarantined_records"], reader.short, level="source", kept=("reason",))
    bad = reader.zero_where(summed(("reason",), reader.recorded(recorded)), reader.lines(), "reason")
    about = (
        "Records per hour that could not be decided and were not counted, by reason; 0 where logs are read and all is "
        "well."
    )
    panel = panels.over_time("Records quarantined", (Line(hourly(bad), "{{reason}}"),), about, unit="per hour")
    unpriced = reader.zero_where(
        summed(("reason",), reader.rated(USAGE["unpriced_requests"])),
        reader.rate("usage", "priced_requests"),
        "reason",
    )
    about = "Requests per second whose cost is not known, by reason. Their tokens are counted; their cost is not."
    prices = panels.over_time("Requests without a price", (Line(unpriced, "{{reason}}"),), about, unit="requests/s")
    return (*tiles, Cell(panel, 12, 6), Cell(prices, 12, 6))


def _tokens(reader: Reader) -> tuple[Cell, ...]:
    kinds = (
        ("cached_prompt_tokens", "read from cache"),
        ("written_prompt_tokens", "written to cache"),
        ("uncached_prompt_tokens", "neither"),
        ("unreported_prompt_tokens", "not reported"),
    )
    lines = [Line(reader.rate("usage", id_), title) for id_, title in kinds]
    about = "Input tokens by what happened to them. The four add up to all input tokens whose number is known."
    cells = [Cell(panels.over_time("Input tokens by kind", lines, about, unit="tokens/s", stacked=True), 12, 9)]
    ttl = (
        Line(f"sum by (ttl) ({reader.rated(USAGE['written_prompt_tokens'])})", "written for {{ttl}}"),
        Line(reader.sides("usage_write_back").numerator, "read"),
    )
    about = (
        "Tokens written by time to live, beside tokens read from caches whose writes are reported: writes should be "
        "read back several times."
    )
    cells.append(Cell(panels.over_time("Written and read", ttl, about, unit="tokens/s"), 12, 9))
    for id_, width in (("usage_population_hit", 8), ("usage_eligible_prefix", 8), ("usage_write_back", 8)):
        ratio = ratio_of(id_)
        lines = [Line(reader.sides(id_, ("model", "template")).quotient, "{{template}} ({{model}})")]
        unit = "count" if id_ == "usage_write_back" else "ratio"
        panel = panels.over_time(ratio.title, lines, panels.about_ratio(ratio), unit=unit)
        cells.append(Cell(panel, width, 8))
    return tuple(cells)


def _cost(reader: Reader) -> tuple[Cell, ...]:
    names, kept = reader.names, ("currency", _COMPONENTS)
    parts = names.rate(USAGE["input_cost"], reader.short, kept=kept)
    components = (Line(f"{summed(kept, reader.recorded(parts))}{_HOUR}", "input {{component}} ({{currency}})"),)
    output = Line(f"{reader.rate('usage', 'output_cost', ('currency',))}{_HOUR}", "output ({{currency}})")
    about = "Cost per hour of requests whose price is known, by component."
    cells = [
        Cell(panels.over_time("Cost per hour", (*components, output), about, unit="currency/h", stacked=True), 8, 9),
    ]
    paid, without = (reader.rate("usage", id_, ("currency",)) for id_ in ("input_cost", "counterfactual_input_cost"))
    lines = (
        Line(f"{paid}{_HOUR}", "paid for input ({{currency}})"),
        Line(f"{without}{_HOUR}", "the same input without caching ({{currency}})"),
    )
    about = (
        "What input cost, and what the same input would have cost without caching, per hour. Unpriced requests "
        "are in neither."
    )
    cells.append(Cell(panels.over_time("Input cost with and without caching", lines, about, unit="currency/h"), 8, 9))
    ratio = ratio_of("usage_net_input_cost")
    line = Line(reader.sides("usage_net_input_cost", ("template",)).quotient, "{{template}} ({{currency}})")
    about = f"{panels.about_ratio(ratio)} Above 1, caching costs more than it saves."
    panel = panels.over_time(ratio.title, (line,), about, unit="ratio", part=False)
    cells.append(Cell(panel, 8, 9))
    return (*cells, *_break_even(reader))


def _break_even(reader: Reader) -> tuple[Cell, ...]:
    """Reads per write that writing needs, (w - 1) / (1 - r), from what was paid per token against plain input."""
    cost, kept = USAGE["input_cost"], ("currency", _COMPONENTS)
    series = reader.names.rate(cost, reader.names.settings.windows.long, kept=kept)
    long = reader.names.settings.windows.long

    def paid(component: str) -> str:
        return summed(("currency",), reader.recorded(series, _component(component)))

    def price(component: str, id_: str) -> str:
        """Paid per token, in each currency of what has a price in it: unpriced tokens would make the others cheap."""
        release = ", ".join(reader.names.labels("template_revision"))
        tokens = reader.recorded(reader.names.rate(USAGE[id_], long))
        priced = f"{reader.recorded(series, _component(component))} * 0 + on ({release}) group_left () {tokens}"
        return queries.grouped(queries.ratio(paid(component), summed(("currency",), priced)))

    plain = price("uncached", "uncached_prompt_tokens")
    write = f"({price('write', 'written_prompt_tokens')} / ({plain} > 0))"
    read = f"({price('read', 'cached_prompt_tokens')} / ({plain} > 0))"
    needed = f"({write} - 1) / (1 - {read} > 0)"
    got = reader.sides("usage_write_back", window=long).quotient
    lines = (
        Line(needed, "needed ({{currency}})"),
        Line(got, "seen"),
        Line(write, "price of writing, w ({{currency}})"),
        Line(read, "price of reading, r ({{currency}})"),
    )
    about = (
        f"Over {long}: writing pays where the tokens read per token written exceed (w - 1) / (1 - r), with w and r the "
        "prices paid per token written and read over that of plain input. Holds for full reads within the time to live "
        "and 0 <= r < 1; partial hits and mixed lifetimes make it an estimate. Written tokens are the denominator of "
        "what was seen; providers that write without reporting it are not in it."
    )
    tile = panels.tile("Break-even: reads per token written", lines, about, unit="count", decimals=2)
    return (Cell(tile, 24, 4),)


def _component(name: str) -> str:
    return f'component="{name}"'


def _latency(reader: Reader) -> tuple[Cell, ...]:
    ttft, window = USAGE["time_to_first_token_seconds"], reader.names.settings.windows.long
    by = ("prompt_band", "cache_state")
    count = summed(by, reader.recorded(reader.names.rate(ttft, window, part="_count", kept=by)))
    columns = (
        Column("Tokens", label="prompt_band", width=90),
        Column("Cache", label="cache_state", width=60),
        Column("P50", reader.quantile(0.5, ttft, by, window=window), unit="seconds"),
        Column("P95", reader.quantile(0.95, ttft, by, window=window), unit="seconds"),
        Column("Requests", f"{count} * {queries.number(window.seconds)} > 0", unit="whole"),
    )
    about = (
        f"Time to the first content fragment over the last {window}, by prompt length and cache state, with the number "
        "of requests behind it. A quantile of few requests says little."
    )
    mean = queries.ratio(
        *(
            summed(by, reader.recorded(reader.names.rate(ttft, reader.short, part=part, kept=by)))
            for part in ("_sum", "_count")
        )
    )
    about_mean = (
        "Mean time to the first content fragment: seconds divided by requests (in the denominator: requests that "
        "report a time to first token; not in it: those that do not)."
    )
    return (
        Cell(panels.table("Time to first token", columns, about, sort=("Tokens", "Cache")), 8, 9),
        Cell(
            panels.over_time(
                "Mean time to first token",
                (Line(mean, "{{prompt_band}} tokens, {{cache_state}}"),),
                about_mean,
                unit="seconds",
            ),
            8,
            9,
        ),
        Cell(
            panels.heatmap("Time to first token, all requests", reader.spread(ttft), ttft.help, unit="seconds"),
            8,
            9,
        ),
    )


def _outcomes(reader: Reader) -> tuple[Cell, ...]:
    requests = (
        Line(f"sum by (status, attempt) ({reader.rated(USAGE['requests'])})", "{{status}}, {{attempt}} attempt"),
    )
    tokens = (
        Line(f"sum by (status, attempt) ({reader.rated(USAGE['prompt_tokens'])})", "{{status}}, {{attempt}} attempt"),
    )
    about = (
        "Failed, cancelled and retried requests keep their tokens and cost apart; a retry that reached the "
        "provider was paid for again."
    )
    cost = (
        Line(
            f"sum by (status, attempt, currency) ({reader.rated(USAGE['input_cost'])}){_HOUR}",
            "{{status}}, {{attempt}} attempt ({{currency}})",
        ),
    )
    return (
        Cell(panels.over_time("Requests by outcome", requests, about, unit="requests/s"), 8, 8),
        Cell(panels.over_time("Input tokens by outcome", tokens, about, unit="tokens/s"), 8, 8),
        Cell(panels.over_time("Input cost by outcome", cost, about, unit="currency/h"), 8, 8),
    )
