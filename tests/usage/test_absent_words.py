"""Words by which a map decides are absent from some lines of a log: whichever way takes a line says the same of it."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from prefix_cache_exporter.usage.intake import Intake
from prefix_cache_exporter.usage.lane.blocks import Blocks
from prefix_cache_exporter.usage.maps.book import get_map

if TYPE_CHECKING:
    from prefix_cache_exporter.usage.record import UsageRecord

LITELLM = {
    "status": "success",
    "cache_hit": False,
    "custom_llm_provider": "anthropic",
    "model": "claude-sonnet-4-5",
    "stream": True,
    "metadata": {
        "usage_object": {
            "prompt_tokens": 1000,
            "completion_tokens": 20,
            "total_tokens": 1020,
            "prompt_tokens_details": {"cached_tokens": 900},
        }
    },
}
CLAUDE = {
    "type": "message",
    "model": "claude-sonnet-4-5",
    "usage": {
        "input_tokens": 10,
        "output_tokens": 20,
        "cache_read_input_tokens": 900,
        "cache_creation_input_tokens": 0,
        "service_tier": "standard",
        "speed": "fast",
    },
}


def kind(record: UsageRecord) -> tuple:
    return (record.provider, record.model, record.status, record.quality, record.service_tier, record.batch)


@pytest.mark.parametrize(
    ("format_", "line", "path"),
    [
        *(("litellm.slp", LITELLM, (word,)) for word in ("status", "cache_hit", "custom_llm_provider", "model")),
        ("litellm.slp", LITELLM, ("stream",)),
        *(("anthropic.messages", CLAUDE, path) for path in (("type",), ("model",), ("usage", "speed"))),
        ("anthropic.messages", CLAUDE, ("usage", "service_tier")),
    ],
)  # fmt: skip
@pytest.mark.parametrize("every", [2, 7])
def test_a_word_that_some_lines_lack_changes_nothing_for_the_others(format_, line, path, every):
    lines = []
    for number in range(300):
        one = json.loads(json.dumps({"id": str(number), **line}))
        holder = one
        for step in path[:-1]:
            holder = holder[step]
        if number % every == 0:
            del holder[path[-1]]
        elif number % every == 1:
            holder[path[-1]] = None
        lines.append(json.dumps(one).encode())
    usage_map = get_map(format_)
    general = Intake(usage_map)
    said = Counter(kind(one) for text in lines for one in general.slowly(text, 0.0))
    intake, found = Intake(usage_map), Counter()
    blocks = Blocks(usage_map, intake.lane)
    for at in range(0, 300, 100):
        taken = blocks.take(b"\n".join(lines[at : at + 100]) + b"\n")
        groups, others = intake.gather(taken.odd, 0.0)
        for group in (*taken.groups, *groups):
            found[kind(group.sample)] += len(group.rows)
        found += Counter(map(kind, others))
    for sums in blocks.sums():
        found[kind(sums.sample)] += sums.requests
    assert found == said
