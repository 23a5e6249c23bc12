"""The constructed examples that every path must come to, from log lines to what is printed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from prefix_cache_exporter.cli import run

GOLDEN = Path(__file__).parent / "golden"

# An 8,000-token prefix, a 500-token suffix, a write at 1.4 and a read at 0.2 of the ordinary price, ten requests.
PRICES = """
provider: anthropic
source: https://example.org/prices
date: 2026-10-11
currency: units
per: 1000
models:
- {id: m, match: [m], prices: [{input: 1, output: 0, read: 0.2x, write: {5m: 1.4x}}]}
"""


def message(number, read, write):
    usage = {
        "input_tokens": 500,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": write,
        "cache_creation": {"ephemeral_5m_input_tokens": write, "ephemeral_1h_input_tokens": 0},
        "output_tokens": 1,
    }
    return {"id": f"msg_{number}", "type": "message", "model": "m", "usage": usage}


COLD, WARM = (0, 8000), (8000, 0)


@pytest.mark.parametrize(
    ("requests", "costs"),
    [
        ([COLD, *[WARM] * 9], (30.6, 14.4, 11.2)),
        ([COLD] * 10, (117, 0, 112)),
        ([WARM] * 10, (21, 16, 0)),
    ],
    ids=["one write and nine reads", "every request writes", "always warm"],
)
def test_ten_requests_cost_85_units_without_a_cache_and_so_many_with_it(log, report, tmp_path, requests, costs):
    paid, read, write = costs
    (tmp_path / "prices.yaml").write_text(PRICES)
    path = log([message(number, *one) for number, one in enumerate(requests)])

    total = report(path, "--format", "anthropic.messages", "--prices", tmp_path / "prices.yaml")["total"]

    cost = total["cost"]["units"]
    assert (cost["counterfactual_input"], cost["input"], cost["read"], cost["write"]) == (85, paid, read, write)
    assert cost["uncached"] == 5
    assert total["ratios"]["usage_net_input_cost"]["by_currency"]["units"] == {
        "numerator": paid,
        "denominator": 85,
        "value": pytest.approx(paid / 85),
    }
    assert [(row["write_multiplier"], row["read_multiplier"], row["hits"]) for row in total["break_even"]] == [
        (1.4, 0.2, 0.5)
    ]
    assert total["ratios"]["usage_request_hit"]["numerator"] == sum(one == WARM for one in requests)


# 80 requests with a shared prefix of 1,024 tokens and 500 of their own, three quarters of the prefix cached;
# 20 requests of 600 tokens that match nothing.
INVENTORY = """
segments:
- id: policy
  version: 7
  owner: support
  scope: tenant-a
  sharing_group: tenant-a
  expected_update_frequency: monthly
  tokens: 1024
templates:
  support: {revisions: {r7: {shared_prefix: [policy]}}}
"""


def completion(number, prompt, cached, metadata):
    return {
        "id": f"cmpl-{number}",
        "object": "chat.completion",
        "created": 1790000000 + number,
        "model": "qwen3",
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": 20,
            "total_tokens": prompt + 20,
            "prompt_tokens_details": {"cached_tokens": cached},
        },
        "metadata": metadata,
    }


OWN_PRICES = """
provider: vllm
source: https://example.org/what-our-machines-cost
date: 2026-10-11
currency: EUR
models:
- {id: ours, match: [qwen*], prices: [{input: 0.5, output: 1.5, read: 0.1x, write: 1x}]}
"""


@pytest.fixture
def worked(log, tmp_path):
    (tmp_path / "prices.yaml").write_text(OWN_PRICES)
    (tmp_path / "inventory.yaml").write_text(INVENTORY)
    tenant_a = [completion(n, 1524, 768, {"template": "support", "revision": "r7", "group": "a"}) for n in range(80)]
    tenant_b = [completion(100 + n, 600, 0, {"template": "search", "revision": "r1", "group": "b"}) for n in range(20)]
    return [
        str(log(tenant_a + tenant_b)), "--format", "vllm.chat", "--inventory", str(tmp_path / "inventory.yaml"),
        "--block-size", "16", "--prices", str(tmp_path / "prices.yaml"), "--field",
        "template=$.metadata.template", "--namespaces", "a,b",
        "--field", "template_revision=$.metadata.revision", "--field", "namespace=$.metadata.group",
        "--by", "template_revision,namespace",
    ]  # fmt: skip


def test_the_worked_example(report, worked):
    document = report(*worked)

    ratios = document["total"]["ratios"]
    assert document["total"]["tokens"]["cached_prompt_tokens"] == 61_440
    population = ratios["usage_population_hit"]
    assert (population["numerator"], population["denominator"]) == (61_440, 133_920)
    assert round(population["value"], 3) == 0.459
    effectiveness = ratios["usage_eligible_prefix"]
    assert (effectiveness["numerator"], effectiveness["denominator"], effectiveness["value"]) == (61_440, 81_920, 0.75)
    assert ratios["usage_request_hit"]["value"] == 0.8
    assert ratios["usage_eligible_coverage"]["value"] == 0.8
    assert [(group["labels"], group["tokens"]["cached_prompt_tokens"]) for group in document["groups"]] == [
        ({"template_revision": "r1", "namespace": "b"}, 0),
        ({"template_revision": "r7", "namespace": "a"}, 61_440),
    ]


@pytest.mark.parametrize("kind", ["text", "markdown", "json", "csv"])
def test_what_is_printed(worked, capsys, kind):
    assert run(["report", *worked, *([] if kind == "text" else [f"--{kind}"])]) == 0
    printed = capsys.readouterr().out
    golden = GOLDEN / f"worked.{ {'text': 'txt', 'markdown': 'md'}.get(kind, kind) }"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(printed)
    assert printed == golden.read_text()


def test_what_is_printed_of_oddities(log, tmp_path, capsys):
    """Writes of unknown lifetime, unknown output, latency, too many groups: each is said where it matters."""
    (tmp_path / "prices.yaml").write_text(PRICES + "default_ttl: 5m\n")
    lines = [
        {"id": f"msg_{n}", "model": f"m{n}" if n > 1 else "m", "usage": {**message(n, 100, 50)["usage"]}}
        for n in range(4)
    ]
    del lines[0]["usage"]["cache_creation"]
    lines[1]["usage"]["output_tokens"] = None
    lines[1]["timestamp"] = "9999-12-31T23:59:59-12:00"
    path = str(log(lines))
    arguments = ["report", path, "--format", "anthropic.messages", "--prices", str(tmp_path / "prices.yaml")]

    assert run([*arguments, "--by", "model", "--groups", "2"]) == 0
    printed = capsys.readouterr().out
    assert "too many groups: 1 of the records are in `other`" in printed
    assert "note: 50 written tokens of unknown time to live are priced by the book's default" in printed
    assert "    requests of unknown output" in printed
    assert "    of these without a cost of output" in printed
    assert "model other" in printed

    assert run([*arguments, "--csv"]) == 0
    header, row = capsys.readouterr().out.splitlines()
    shown = dict(zip(header.split(","), row.split(","), strict=True))
    assert (shown["written_prompt_tokens_5m"], shown["written_prompt_tokens_unknown"]) == ("150", "50")
    assert shown["usage_net_input_cost_units_denominator"] == "1.3"


def test_what_is_printed_of_latency(log, tmp_path, capsys):
    (tmp_path / "maps").mkdir()
    (tmp_path / "maps" / "house.chat.yaml").write_text(
        "format: house.chat\nextends: vllm.chat\ntitle: with times\nttft: [{path: $.seconds, unit: s}]\n"
    )
    path = str(log([{**completion(n, 100, 0, {}), "seconds": n / 100} for n in range(25)]))
    assert run(["report", path, "--format", "house.chat", "--maps", str(tmp_path / "maps")]) == 0
    assert capsys.readouterr().out.splitlines()[-4:] == [
        "  latency of successful requests in seconds",
        "    measure              count   P50  P95            P99",
        "    time to first token     25  0.12  not supported  not supported",
        "    note: a percentile with fewer than 10 observations beyond it is not supported by the sample",
    ]
