from __future__ import annotations

from prefix_cache_exporter import measures
from prefix_cache_exporter.demo.readings import legend, readings, revisions, totals

CACHED, PROMPT = (measures.ENGINE[id_].name for id_ in ("cached_prompt_tokens", "prompt_tokens"))
HITS, REPORTED = (measures.USAGE[id_].name for id_ in ("hit_requests", "reported_requests"))


def page(cached: int, prompt: int, hits: int, reported: int) -> str:
    return f"""\
# TYPE {CACHED}_total counter
{CACHED}_total{{source="vllm",template_revision="r41"}} {cached}
{CACHED}_total{{source="vllm",template_revision="mixed"}} 10
{CACHED}_total{{source="search",template_revision="r7"}} 99
# TYPE {PROMPT}_total counter
{PROMPT}_total{{source="vllm",template_revision="r41"}} {prompt}
# TYPE {HITS}_total counter
{HITS}_total{{source="gateway"}} {hits}
# TYPE {REPORTED}_total counter
{REPORTED}_total{{source="gateway"}} {reported}
# TYPE prefix_cache_engine_up gauge
prefix_cache_engine_up{{source="support"}} 1
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 3
"""


SOURCES = {"engine": "vllm", "usage": "gateway"}


def test_both_sides_are_summed_over_an_interval_before_dividing():
    before, after = totals(page(1_000, 2_000, 5, 5)), totals(page(61_440 + 1_000, 133_920 + 2_000, 25, 30))

    assert [str(reading) for reading in readings(before, after, SOURCES)] == [
        "Population hit ratio (engine)   45.9% = 61,440 / 133,920 tokens",
        "Request hit ratio               80.0% = 20 / 25 requests",
    ]


def test_each_revision_has_ratios_of_its_own():
    cached, prompt = f"{CACHED}_total", f"{PROMPT}_total"
    before = {(cached, "vllm", "r41"): 900, (prompt, "vllm", "r41"): 1_000}
    after = before | {
        (cached, "vllm", "mixed"): 6,
        (prompt, "vllm", "mixed"): 12,
        (cached, "vllm", "r42"): 0,
        (prompt, "vllm", "r42"): 50,
    }

    assert revisions(before, after, SOURCES) == ["mixed", "r42"]
    assert [str(reading) for reading in readings(before, after, SOURCES, "r42")] == [
        "Population hit ratio (engine)    0.0% = 0 / 50 tokens",
    ]
    assert [str(reading) for reading in readings(before, after, SOURCES)] == [
        "Population hit ratio (engine)    9.7% = 6 / 62 tokens",
    ]


def test_only_counters_of_a_source_are_summed():
    assert totals(page(1, 2, 3, 4)) == {
        (f"{CACHED}_total", "vllm", "r41"): 1,
        (f"{CACHED}_total", "vllm", "mixed"): 10,
        (f"{CACHED}_total", "search", "r7"): 99,
        (f"{PROMPT}_total", "vllm", "r41"): 2,
        (f"{HITS}_total", "gateway", ""): 3,
        (f"{REPORTED}_total", "gateway", ""): 4,
    }


def test_a_legend_says_what_each_ratio_is_a_ratio_of():
    lines = legend()

    assert len(lines) == 4
    assert lines[0].splitlines()[0] == "Population hit ratio (engine) = cached prompt tokens / prompt tokens"
    assert lines[3].splitlines()[0] == "Request hit ratio = hit requests / reported requests"
    assert all("\n    Out of " in line and "without" in line for line in lines)
