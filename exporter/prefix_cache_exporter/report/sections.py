"""The document's parts as tables: title, header, rows. Text and Markdown draw the same ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .table import percent, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .table import Cell


class Section(NamedTuple):
    """One table with its heading; a section without rows is not drawn."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


def sections(group: Mapping[str, Any]) -> Iterator[Section]:
    """Every table of one group."""
    yield Section("ratios", ("ratio", "value", "numerator", "denominator", "of"), list(_ratios(group["ratios"])))
    yield Section("tokens", ("tokens", "count"), list(_tokens(group["tokens"])))
    yield Section(
        "outcomes",
        ("status", "attempt", "requests", "input tokens", "cached", "written", "output tokens", "cost"),
        [_outcome(row) for row in group["outcomes"]],
    )
    for currency, cost in group["cost"].items():
        yield Section(f"cost in {currency}", ("part", "amount"), list(_cost(cost)), _cost_note(cost))
    unpriced = group["unpriced_requests"]
    yield Section("requests without a cost", ("reason", "requests"), list(unpriced.items()))
    yield _break_even(group["break_even"])
    yield Section(
        "latency of successful requests in seconds",
        ("measure", "count", "P50", "P95", "P99"),
        [
            _latency(name, group[key])
            for name, key in (("time to first token", "time_to_first_token_seconds"), ("duration", "duration_seconds"))
            if group[key]["count"]
        ],
        "a percentile with fewer than 10 observations beyond it is not supported by the sample",
    )


def heading(document: Mapping[str, Any]) -> list[str]:
    """What was read and what was left out, in a few lines."""
    lines, records = document["lines"], document["records"]
    files = document["files"]
    span = f", {document['from']} to {document['to']}" if document["from"] else ""
    count = document["total"]["requests"]
    requests = f"{shown(count)} request{'' if count == 1 else 's'}"
    oddities = ((records["quarantined"], "quarantined"), (records["anomalies"], "anomalies"))
    said = [
        f"{requests} from {files} file{'' if files == 1 else 's'} of {document['format']}{span}",
        f"lines: {shown(lines['read'])} read, {_counts(lines['lost'], 'lost')}, {_counts(lines['ignored'], 'ignored')}",
        ", ".join(
            [f"records: {shown(records['duplicates'])} duplicates", *(_counts(found, what) for found, what in oddities)]
        ),
        "quality: " + (", ".join(f"{name} {shown(count)}" for name, count in records["by_quality"].items()) or "-"),
    ]
    said += [f"not read to its end: {path}: {reason}" for path, reason in document["unreadable_files"].items()]
    if document["records_in_other"]:
        said.append(f"too many groups: {shown(document['records_in_other'])} of the records are in `other`")
    return said


def reconciliation(document: Mapping[str, Any]) -> Section | None:
    """The comparison with a provider's aggregates, where one was asked for."""
    found = document.get("reconciliation")
    if found is None:
        return None
    compared = f"{shown(found['compared'])} numbers compared, {shown(len(found['differences']))} differ"
    if not found["by_model"]:
        compared += "; the aggregates name no models, so days are compared as a whole"
    if found["costs_not_compared"]:
        why = "some of the records have none, or none in that currency"
        compared += f"; {shown(found['costs_not_compared'])} costs not compared: {why}"
    if found["records_not_compared"]:
        compared += f"; {shown(found['records_not_compared'])} records of too many days and models not compared"
    header = ("day", "model", "measure", "logged", "billed", "difference", "relative")
    rows = [
        (*(row[name] for name in header[:-1]), None if row["relative"] is None else percent(row["relative"]))
        for row in found["differences"]
    ]
    return Section("differences from the provider's aggregates", header, rows, compared)


def labels_of(group: Mapping[str, Any]) -> str:
    """A group's name."""
    return ", ".join(f"{name} {value or '(none)'}" for name, value in group["labels"].items())


def _counts(counts: Mapping[str, int], what: str) -> str:
    reasons = ", ".join(f"{reason} {shown(count)}" for reason, count in counts.items())
    return f"{shown(sum(counts.values()))} {what}" + (f" ({reasons})" if reasons else "")


def _ratios(ratios: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    for ratio in ratios.values():
        title = ratio["title"] + (f" {ratio['symbol']}" if "symbol" in ratio else "")
        sides = ratio.get("by_currency") or {"": ratio}
        for currency, side in sides.items():
            of = f"{ratio['numerator_of']} / {ratio['denominator_of']}" + (f", {currency}" if currency else "")
            yield title, percent(side["value"]), side["numerator"], side["denominator"], of


def _tokens(tokens: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    names = {
        "prompt_tokens": "input, cache usage reported",
        "unreported_prompt_tokens": "input, cache usage not reported",
        "cached_prompt_tokens": "read from a cache",
        "written_prompt_tokens": "written to a cache",
        "uncached_prompt_tokens": "neither read nor written",
        "output_tokens": "output",
        "eligible_tokens": "eligible shared prefix",
        "eligible_cached_tokens": "cached within it",
    }
    for key, name in names.items():
        if key != "written_prompt_tokens":
            yield name, tokens[key]
        for ttl, count in tokens[key].items() if key == "written_prompt_tokens" else ():
            yield f"{name}, {ttl}", count
    if tokens["output_unknown_requests"]:
        yield "requests of unknown output", tokens["output_unknown_requests"]


def _outcome(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    cost = ", ".join(f"{shown(amount)} {currency}" for currency, amount in row["cost"].items())
    return (
        row["status"],
        row["attempt"],
        row["requests"],
        row["input_tokens"],
        row["cached_prompt_tokens"],
        row["written_prompt_tokens"],
        row["output_tokens"],
        cost or None,
    )


def _cost(cost: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    yield "input read from a cache", cost["read"]
    yield "input written to a cache", cost["write"]
    yield "other input", cost["uncached"]
    yield "input paid", cost["input"]
    yield "the same input without caching", cost["counterfactual_input"]
    yield "output", cost["output"]
    yield "requests priced", cost["priced_requests"]
    if cost["output_unknown_requests"]:
        yield "of these without a cost of output", cost["output_unknown_requests"]


def _cost_note(cost: Mapping[str, Any]) -> str:
    tokens = cost["assumed_ttl_tokens"]
    return f"{shown(tokens)} written tokens of unknown time to live are priced by the book's default" if tokens else ""


def _break_even(rows: Sequence[Mapping[str, Any]]) -> Section:
    return Section(
        "break-even hits (w - 1) / (1 - r)",
        ("provider", "model", "time to live", "w", "r", "hits must exceed"),
        [
            (
                row["provider"],
                row["model"],
                row["ttl"],
                f"{row['write_multiplier']:g}",
                f"{row['read_multiplier']:g}",
                "never pays" if row["hits"] is None else f"{row['hits']:.4g}",
            )
            for row in rows
        ],
        f"holds for {rows[0]['conditions']}" if rows else "",
    )


def _latency(name: str, found: Mapping[str, Any]) -> tuple[Cell, ...]:
    values = [found[quantile]["value"] for quantile in ("p50", "p95", "p99")]
    return name, found["count"], *("not supported" if value is None else f"{value:.4g}" for value in values)
