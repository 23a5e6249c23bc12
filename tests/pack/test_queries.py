from __future__ import annotations

import pytest

from prefix_cache_exporter.measures import ENGINE, USAGE
from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.durations import Duration

FIVE = Duration.parse("5m")


def test_the_usual_shapes():
    tokens = queries.rate(ENGINE["prompt_tokens"], FIVE, 'cluster="eu"', "")
    assert tokens == 'rate(prefix_cache_engine_prompt_tokens_total{cluster="eu"}[5m])'
    assert queries.total(["model"], tokens) == f"sum by (model) ({tokens})"
    assert queries.rate(USAGE["time_to_first_token_seconds"], FIVE, part="_sum") == (
        "rate(prefix_cache_usage_time_to_first_token_seconds_sum[5m])"
    )
    assert queries.ratio("a", "b + c") == "a / ((b + c) > 0)"
    assert queries.known_sum("a", "b") == "a + (b or a * 0)"
    assert queries.either("a", "b * 0") == "a\nor\n(b * 0)"
    assert queries.quoted('say "hi"') == '"say \\"hi\\""'


@pytest.mark.parametrize(
    ("expr", "shown"),
    [
        ("a", "a"),
        ("sum by (x) (a + b)", "sum by (x) (a + b)"),
        ("a and b", "(a and b)"),
        ('a{x="b or c"}', 'a{x="b or c"}'),
        ("a >= 1", "(a >= 1)"),
        ("f(a) - f(b)", "(f(a) - f(b))"),
    ],
)
def test_parentheses_stand_where_an_operator_would_leak(expr, shown):
    assert queries.grouped(expr) == shown


@pytest.mark.parametrize(
    ("value", "text"), [(10000.0, "10000"), (0.05, "0.05"), (604800.0, "604800"), (1e-7, "0.0000001"), (0, "0")]
)
def test_numbers(value, text):
    assert queries.number(value) == text
