"""A history small enough for a pocket calculator, and what panels must show of it: one number beside each query.

Three sources tell of usage: `claude` is priced in USD and reports its writes; `eu` the same in EUR, and has no plain
tokens; `gpt` has no price, says nothing about writes, a namespace or a quarter of its requests. Two pods of one
engine served r1 for an hour and serve r2 since half an hour.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from prefix_cache_exporter.pack.dashboards.files import dashboard_files
from prefix_cache_exporter.pack.dashboards.lint.document import panels
from prefix_cache_exporter.pack.settings import read_settings
from support import tsdb
from support.boards import board, everything, filled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.prometheus
RULES = sorted((Path(__file__).parents[2] / "alerts").glob("*.rules.yaml"))
WINDOWS = {"$__rate_interval": "240s", "$__range": "1h"}
RELEASE = {"template": ["support"], "new_revision": ["r2"], "old_revision": ["r1"]}
START = float((int(time.time()) - 6 * 3600) // 3600 * 3600)
MINUTES, RELEASED = 90, 60
ENGINE, USAGE, FIRST = (
    "prefix_cache_engine",
    "prefix_cache_usage",
    "prefix_cache_release_first_traffic_timestamp_seconds",
)


class History:
    """OpenMetrics text of series that are functions of the minute."""

    def __init__(self) -> None:
        self._rows: dict[str, list[str]] = {}

    def add(self, name: str, labels: dict[str, str], value: Callable[[int], float], *, since: int = 0) -> None:
        inside = ",".join(f'{key}="{text}"' for key, text in labels.items())
        self._rows.setdefault(name, []).extend(
            f"{name}{{{inside}}} {value(minute)} {START + minute * 60}\n" for minute in range(since, MINUTES + 1)
        )

    def counters(self, labels: dict[str, str], **a_minute: float) -> None:
        for name, amount in a_minute.items():
            self.add(f"{USAGE}_{name}_total", labels, lambda minute, amount=amount: amount * minute)

    def text(self) -> str:
        families = (
            f"# TYPE {name.removesuffix('_total')} {'counter' if name.endswith('_total') else 'gauge'}\n{''.join(rows)}"
            for name, rows in self._rows.items()
        )
        return f"{''.join(families)}# EOF\n"


def engine(history: History, pod: str, size: int, up: int) -> None:
    release = {"source": "llm", "provider": "vllm", "model": "m1", "template": "support"}
    for revision, began, cached in (("r1", 0, 3000), ("r2", RELEASED, 1500)):
        labels = {"instance": pod, "engine": "0", **release, "template_revision": revision}
        served = (lambda minute: min(minute, RELEASED)) if revision == "r1" else (lambda minute: minute - RELEASED)
        for name, amount in (("prompt_tokens", 6000 * size), ("cached_prompt_tokens", cached * size)):
            counted = lambda minute, amount=amount, served=served: amount * served(minute)  # noqa: E731  # of one line
            history.add(f"{ENGINE}_{name}_total", labels, counted, since=began)
        history.add(
            FIRST,
            {"instance": pod, **release, "template_revision": revision},
            lambda _, at=began: START + at * 60,
            since=began,
        )
    levels = {"instance": pod, "source": "llm", "provider": "vllm", "model": "m1", "engine": "0"}
    history.add(f"{ENGINE}_kv_usage_ratio", levels, lambda _: 0.2 * size)
    history.add(f"{ENGINE}_capacity_tokens", levels, lambda _: 1000 * size)
    history.add(f"{ENGINE}_up", {"instance": pod, "source": "llm"}, lambda _: up)


def labels_of(source: str, provider: str) -> dict[str, str]:
    release = {"provider": provider, "model": f"{source}-1", "template": "support", "template_revision": "r1"}
    return {"instance": "g", "source": source, **release}


def outcome_of(source: str, provider: str, namespace: str) -> dict[str, str]:
    outcome = {"namespace": namespace, "task": "chat", "status": "ok", "attempt": "first"}
    return {**labels_of(source, provider), **outcome}


def usage(history: History, source: str, provider: str, namespace: str, **a_minute: float) -> None:
    history.counters(outcome_of(source, provider, namespace), **a_minute)
    history.add(FIRST, labels_of(source, provider), lambda _: START)


def priced(history: History, source: str, provider: str, currency: str, written: float, **costs: float) -> None:
    outcome = outcome_of(source, provider, "n1")
    history.counters({**outcome, "ttl": "5m"}, written_prompt_tokens=written)
    for component in ("read", "write", "uncached"):
        history.counters({**outcome, "currency": currency, "component": component}, input_cost=costs[component])
    history.counters({**outcome, "currency": currency}, counterfactual_input_cost=costs["without"], priced_requests=10)


def made() -> str:
    history = History()
    engine(history, "x", 1, 1)
    engine(history, "y", 3, 0)
    for target, up in (("x", 1), ("y", 1), ("z", 0)):
        history.add("up", {"job": "prefix-cache-exporter", "instance": target}, lambda _, up=up: up)
    whole = {"requests": 10, "reported_requests": 10, "hit_requests": 5}
    usage(
        history, "claude", "anthropic", "n1", **whole,
        prompt_tokens=10_000, cached_prompt_tokens=6000, uncached_prompt_tokens=2000,
        eligible_tokens=8000, eligible_cached_tokens=4000, eligible_requests=10,
    )  # fmt: skip
    # Per thousand tokens 1 USD plain, 1.25 written, 0.1 read.
    priced(history, "claude", "anthropic", "USD", written=2000, read=0.6, write=2.5, uncached=2, without=10)
    usage(
        history,
        "eu",
        "mistral",
        "n1",
        **whole,
        prompt_tokens=10_000,
        cached_prompt_tokens=5000,
        uncached_prompt_tokens=0,
    )
    priced(history, "eu", "mistral", "EUR", written=5000, read=1, write=12, uncached=0, without=20)
    usage(
        history, "gpt", "openai", "", requests=40, reported_requests=30, unreported_requests=10, hit_requests=15,
        prompt_tokens=30_000, cached_prompt_tokens=24_000, uncached_prompt_tokens=6000, unreported_prompt_tokens=1000,
    )  # fmt: skip
    for source, lines, lost in (("claude", 20, 0), ("eu", 20, 0), ("gpt", 40, 2)):
        history.counters({"instance": "g", "source": source}, lines=lines)
        if lost:
            history.counters({"instance": "g", "source": source, "reason": "not_json"}, lost_lines=lost)
    return history.text()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    data = tsdb.made(tmp_path_factory.mktemp("by_hand"), made(), RULES, START, START + MINUTES * 60)
    with tsdb.prometheus(data) as running:
        yield running


ALL: dict[str, list[str]] = {}
CLAUDE, NOT_EU, NOBODY = {"source": ["claude"]}, {"source": ["claude", "gpt"]}, {"source": ["nobody"]}
"""The panel's letter, what is chosen, and what it shows then, by the labels that its legend names."""
SHOWN = [
    # (6000 + 18000) prompt tokens a minute on two pods, a quarter of them cached since r2.
    ("overview", "Population hit ratio (engine)", "A", ALL, {"": 0.25}),
    ("overview", "Population hit ratio (engine)", "B", ALL, {"": 100}),
    ("overview", "Population hit ratio (engine)", "C", ALL, {"": 400}),
    ("overview", "Population hit ratio (engine)", "A", CLAUDE, {}),
    ("overview", "Population hit ratio (usage)", "A", ALL, {"": 35 / 50}),
    ("overview", "Population hit ratio (usage)", "A", NOT_EU, {"": 30 / 40}),
    ("overview", "Population hit ratio (usage)", "A", NOBODY, {}),
    ("overview", "Population hit ratio (usage)", "C", NOT_EU, {"": 40_000 / 60}),
    ("overview", "Eligible-prefix effectiveness", "A", ALL, {"": 0.5}),
    ("overview", "Request hit ratio", "A", ALL, {"": 25 / 50}),
    ("overview", "Net input cost ratio", "A", ALL, {"USD": 5.1 / 10, "EUR": 13 / 20}),
    ("overview", "Net input cost ratio", "B", ALL, {"USD": 5.1 * 60, "EUR": 13 * 60}),
    ("overview", "Net input cost ratio", "C", CLAUDE, {"USD": 10 * 60}),
    ("overview", "Coverage (requests)", "A", ALL, {"": 50 / 60}),
    ("overview", "Coverage (requests)", "A", CLAUDE, {"": 1}),
    ("overview", "Population hit ratio, engine plane (dashed: expected)", "A", ALL, {"llm m1 support r2": 0.25}),
    ("overview", "Population hit ratio, engine plane (dashed: expected)", "B", ALL, {"llm m1 support r2": 0.5}),
    ("overview", "Revisions side by side", "E", CLAUDE, {"claude claude-1 support r1": 0.6}),
    ("overview", "Engines up", "A", ALL, {"llm": 0.5}),
    ("release", "Population hit ratio (engine) since first traffic", "X0", RELEASE, {"": 1.5}),
    ("release", "Population hit ratio (engine) since first traffic", "X1", RELEASE, {"": 0.5}),
    ("release", "Population hit ratio (engine) since first traffic", "Y0", RELEASE, {}),
    ("release", "Population hit ratio (engine) since first traffic", "Y1", RELEASE, {"": 0.25}),
    ("release", "Warming up, engine plane", "B", RELEASE, {"": 0.5}),
    ("release", "Warming up, engine plane", "C", RELEASE, {"": 1800}),
    ("release", "Warming up, engine plane", "D", RELEASE, {"": 1800}),
    ("release", "Warming up, usage plane", "D", RELEASE, {}),
    ("release", "Population hit ratio (engine) and traffic", "C", RELEASE, {"": 0}),
    ("engine", "KV usage", "B", ALL, {"llm m1": (200 + 1800) / 4000}),
    ("engine", "Engine coverage", "A", ALL, {"": 1}),
    ("usage", "Coverage (input tokens)", "A", ALL, {"": 50 / 51}),
    ("usage", "Coverage (eligible prefix)", "A", ALL, {"": 10 / 50}),
    ("usage", "Input tokens by kind", "B", ALL, {"": 7000 / 60}),
    ("usage", "Input tokens by kind", "D", ALL, {"": 1000 / 60}),
    ("usage", "Input tokens by kind", "D", CLAUDE, {}),
    # What gpt reads is no read of what the others wrote.
    ("usage", "Written and read", "B", ALL, {"": 11_000 / 60}),
    ("usage", "Write-back ratio", "A", ALL, {"claude-1 support": 3, "eu-1 support": 1}),
    ("usage", "Break-even: reads per token written", "B", ALL, {"": 11 / 7}),
    # Prices are those of tokens that have one: gpt's have none; eu paid for no plain token to compare with.
    ("usage", "Break-even: reads per token written", "C", ALL, {"USD": 1.25}),
    ("usage", "Break-even: reads per token written", "D", ALL, {"USD": 0.1}),
    ("usage", "Break-even: reads per token written", "A", ALL, {"USD": 0.25 / 0.9}),
    ("usage", "Records quarantined", "A", ALL, {"none": 0}),
    ("usage", "Net input cost ratio", "A", ALL, {"USD support": 0.51, "EUR support": 0.65}),
    ("trust", "Requests without a namespace", "A", ALL, {"": 40 / 60}),
    ("trust", "Requests without a namespace", "A", CLAUDE, {"": 0}),
    ("trust", "Population hit ratio (usage) by namespace", "A", ALL, {"n1": 11 / 20, "(none)": 0.8}),
    ("trust", "Request hit ratio by namespace", "A", ALL, {"n1": 0.5, "(none)": 0.5}),
    ("trust", "Namespaces", "A", CLAUDE, {"claude claude-1 n1": 0.6}),
    ("trust", "Namespaces that share a cache", "A", CLAUDE, {"claude claude-1": 1}),
    ("health", "Exporters that answer", "A", ALL, {"": 2 / 3}),
    ("health", "Lines read", "A", ALL, {"claude": 1 / 3, "eu": 1 / 3, "gpt": 2 / 3}),
    ("health", "Losses by reason", "A", ALL, {"gpt not_json": 120}),
    ("health", "Losses by reason", "A", CLAUDE, {"none": 0}),
    ("health", "Losses by reason", "C", ALL, {"none": 0}),
    ("health", "Losses by reason", "A", NOBODY, {}),
]  # fmt: skip
LEGEND = ("currency", "source", "model", "template", "template_revision", "namespace", "reason")


@pytest.mark.parametrize("case", SHOWN, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
def test_a_panel_shows_what_a_pocket_calculator_says(
    address: str, case: tuple[str, str, str, dict[str, list[str]], dict[str, float]]
) -> None:
    name, title, letter, chosen, expected = case
    assert shown(address, board(name), title, letter, chosen) == pytest.approx(expected)


@pytest.mark.parametrize(
    "case", [case for case in SHOWN if case[0] == "trust"], ids=lambda case: f"{case[1]}-{case[2]}"
)
def test_without_rules_by_namespace_the_same_is_read_from_pods(
    address: str, case: tuple[str, str, str, dict[str, list[str]], dict[str, float]]
) -> None:
    _, title, letter, chosen, expected = case
    made = dashboard_files(read_settings({"namespaces": False}, "pack.yaml"))

    assert "namespace:" not in made["trust.json"]
    assert shown(address, json.loads(made["trust.json"]), title, letter, chosen) == pytest.approx(expected)


def shown(address: str, document: Any, title: str, letter: str, chosen: dict[str, list[str]]) -> dict[str, float]:
    """What the first panel of a title shows under one letter, at the end of the history."""
    panel = next(one for one in panels(document) if one["title"] == title)
    (expr,) = (target["expr"] for target in panel["targets"] if target["refId"] == letter)
    found = tsdb.at(address, filled(expr, everything(document) | chosen, WINDOWS), START + MINUTES * 60)
    return {
        " ".join(one["metric"][label] for label in LEGEND if label in one["metric"]): float(one["value"][1])
        for one in found
    }
