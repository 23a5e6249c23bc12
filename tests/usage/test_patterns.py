from __future__ import annotations

import pytest

from prefix_cache_exporter.usage.patterns import compile_patterns, spellings


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("gpt-6", "gpt-6", "gpt-6-sol"),
        ("gpt-6*", "gpt-6-sol", "my-gpt-6"),
        ("*nova-pro*", "us.amazon.nova-pro-v1:0", "nova-lite"),
        ("*-mini", "gpt-5-mini", "gpt-5-mini-high"),
        ("/^o[134](-|$)/", "o3-mini", "o2"),
        ("a.b", "a.b", "axb"),
    ],
)
def test_patterns(pattern, matching, other):
    found = compile_patterns(["never", pattern])
    assert found.search(matching)
    assert not found.search(other)


def test_a_broken_expression_is_told():
    with pytest.raises(ValueError, match=r"/\(/ is not a regular expression"):
        compile_patterns(["/(/"])


@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("GPT-4o", ["gpt-4o"]),
        ("gpt-5.2-20251211", ["gpt-5.2-20251211", "gpt-5.2-2025-12-11", "gpt-5.2"]),
        ("claude-sonnet-4@20250514", ["claude-sonnet-4@20250514", "claude-sonnet-4-2025-05-14", "claude-sonnet-4"]),
        ("openrouter/anthropic/x", ["openrouter/anthropic/x", "anthropic/x", "x"]),
    ],
)
def test_spellings_go_from_the_most_specific_to_the_least(model, names):
    assert list(spellings(model)) == names
