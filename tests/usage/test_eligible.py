from __future__ import annotations

import pytest

from prefix_cache_exporter.usage.eligible import REASONS, Eligibility
from prefix_cache_exporter.usage.inventory import load_inventory
from prefix_cache_exporter.usage.reuse import Rule, find_rule, shipped_rules
from support.records import record


@pytest.fixture
def inventory(tmp_path):
    def load(tokens, reuse="[]"):
        path = tmp_path / "inventory.yaml"
        path.write_text(f"""
reuse: {reuse}
segments:
- {{id: s, version: 1, owner: o, scope: all, sharing_group: g, expected_update_frequency: never, tokens: {tokens}}}
templates: {{chat: {{revisions: {{r1: {{shared_prefix: [s]}}}}}}}}
""")
        return load_inventory(path)

    return load


CHAT = {"template": "chat", "template_revision": "r1"}


@pytest.mark.parametrize(
    ("shared", "total", "eligible"),
    [
        (70, 700, 64),  # six tokens of a fifth block are computed again
        (64, 700, 64),
        (15, 700, 0),
        (64, 64, 48),  # the last token of a prompt is always computed, so its block cannot be reused
        (64, 65, 64),
        (64, None, 64),
        (0, 0, 0),
    ],
)
def test_an_engine_reuses_whole_blocks(inventory, shared, total, eligible):
    one = record(provider="vllm", model="m", total=total, extra=CHAT)
    assert Eligibility(inventory(shared), block_size_tokens=16).eligible(one) == eligible


@pytest.mark.parametrize(
    ("provider", "model", "shared", "eligible"),
    [
        ("openai", "gpt-6-sol", 1023, 0),
        ("openai", "gpt-6-sol", 1024, 1024),
        ("openai", "gpt-4o", 1023, 0),
        ("openai", "gpt-4o", 1500, "minimum_disputed"),
        ("openai", "gpt-5.2-2025-12-11", 2048, 2048),
        ("azure", "gpt-4o", 1500, 1500),
        ("azure", "gpt-5.6-sol", 1023, 0),
        ("azure", "gpt-5.6-sol", 1024, 1024),
        ("minimax", "MiniMax-M3", 511, 0),
        ("minimax", "MiniMax-M3", 512, 512),
        ("anthropic", "claude-opus-5-5", 511, 0),
        ("anthropic", "claude-opus-5-5", 512, 512),
        ("anthropic", "claude-haiku-4-5-20251001", 4095, 0),
        ("anthropic", "claude-opus-4-20250514", 1024, 1024),
        ("anthropic", "claude-opus-4-1-20250805", 1024, 1024),
        ("anthropic", "claude-opus-4-8", 1024, 1024),
        ("anthropic", "claude-3-5-haiku-latest", 2047, 0),
        ("anthropic", "claude-sonnet-4-6", 1023, 0),
        ("anthropic", "claude-sonnet-4-6", 1500, "minimum_disputed"),
        ("anthropic", "claude-sonnet-4-6", 2048, 2048),
        ("anthropic", "claude-opus-4-7", 2047, 0),
        ("anthropic", "claude-opus-4-7", 2048, 2048),
        ("bedrock", "us.anthropic.claude-opus-4-7-v1:0", 2048, "minimum_disputed"),
        ("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", 1024, 1024),
        ("vertex_ai", "claude-sonnet-5@20260101", 1024, 1024),
        ("gemini", "gemini-2.5-flash", 1024, 1024),
        ("gemini", "gemini-2.5-pro", 2047, 0),
        ("gemini", "gemini-2.5-pro", 3000, "minimum_disputed"),
        ("gemini", "gemini-2.5-pro", 4096, 4096),
        ("groq", "kimi-k2", 5000, "minimum_unknown"),
        ("anthropic", "claude-fable-5-2", 5000, "minimum_unknown"),
        ("vllm", "m", 5000, "block_size_unknown"),
    ],
)
def test_a_hosted_api_reuses_nothing_below_its_minimum(inventory, provider, model, shared, eligible):
    one = record(provider=provider, model=model, total=9000, extra=CHAT)
    decided = Eligibility(inventory(shared)).decide(one)
    assert decided == eligible
    assert isinstance(eligible, int) or (eligible in REASONS and Eligibility(inventory(shared)).eligible(one) is None)


@pytest.mark.parametrize(
    ("stated", "provider", "eligible"),
    [
        ("1024", "vllm", 1024),
        ("70", "vllm", 64),
        ("1000", "openai", 0),
        ("1024.0", "openai", 1024),
        ("5000", "groq", 5000),  # no rule is known: the record is believed
        ("-1", "vllm", "bad_eligible_tokens"),
        ("1e3", "vllm", "bad_eligible_tokens"),
        ("", "vllm", "bad_eligible_tokens"),
        ("9" * 400, "vllm", "bad_eligible_tokens"),
        ("9001", "vllm", "longer_than_input"),
    ],
)
def test_a_records_own_field_comes_first(inventory, stated, provider, eligible):
    one = record(provider=provider, model="gpt-6-sol", total=9000, extra={**CHAT, "eligible_tokens": stated})
    assert Eligibility(inventory(4096), block_size_tokens=16).decide(one) == eligible


def test_a_stated_length_is_believed_where_the_block_size_is_not_known():
    one = record(provider="vllm", model="m", total=9000, extra={"eligible_tokens": "70"})
    assert Eligibility().eligible(one) == 70


def test_what_is_not_registered_is_not_eligible_and_not_ineligible(inventory):
    eligibility = Eligibility(inventory(4096), block_size_tokens=16)
    assert eligibility.decide(record(provider="vllm", model="m", total=9000)) == "not_registered"
    assert (
        eligibility.decide(record(provider="vllm", model="m", total=9000, extra={"template": "x"})) == "not_registered"
    )
    assert eligibility.decide(record(provider="vllm", model="m", total=600, extra=CHAT)) == "longer_than_input"
    assert Eligibility().decide(record(provider="vllm", model="m", total=9000, extra=CHAT)) == "not_registered"


def test_the_release_in_force_stands_in_for_a_record_that_says_nothing(inventory):
    eligibility = Eligibility(inventory(4096), block_size_tokens=16)
    assert eligibility.eligible(record(provider="vllm", model="m", total=9000), "chat", "r1") == 4096
    assert eligibility.eligible(record(provider="vllm", total=9000, extra={"template": "x"}), "chat", "r1") is None


def test_the_inventory_knows_its_own_deployments_best(inventory):
    reuse = "[{provider: hosted_vllm, block_size_tokens: 32}, {provider: groq, models: [kimi*], minimum_tokens: 128}]"
    eligibility = Eligibility(inventory(100, reuse))
    assert eligibility.eligible(record(provider="vllm", model="m", total=900, extra=CHAT)) == 96
    assert eligibility.eligible(record(provider="vllm", model="m", total=96 + 4, extra=CHAT)) == 96
    assert eligibility.eligible(record(provider="groq", model="kimi-k2", total=900, extra=CHAT)) == 0
    assert eligibility.decide(record(provider="groq", model="qwen", total=900, extra=CHAT)) == "minimum_unknown"


def test_a_dated_rule_holds_while_it_holds(inventory):
    rules = (Rule("openai", end=1000.0, minimum=(128, 128)), Rule("openai", start=1000.0, minimum=(64, 64)))
    eligibility = Eligibility(inventory(100), rules=rules)
    assert [
        eligibility.eligible(record(model="m", time=time, total=900, extra=CHAT)) for time in (999.0, 1000.0, None)
    ] == [0, 100, 100]


def test_a_rule_for_some_models_does_not_fit_a_nameless_one():
    assert find_rule(shipped_rules(), "openai", None, None) is None
    assert find_rule(shipped_rules(), "somebody", "gpt-6", None) is None


def test_what_is_remembered_is_bounded(inventory):
    eligibility = Eligibility(inventory(100), block_size_tokens=16)
    for number in range(5000):
        eligibility.eligible(record(provider="vllm", model=f"m{number}", total=900, extra=CHAT))
    assert len(eligibility._lengths) <= 4096
    assert len(eligibility._known) <= 4096
