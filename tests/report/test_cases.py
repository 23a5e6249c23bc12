"""Usage cases from public bug reports, through `report`, with their values."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from prefix_cache_exporter.usage.maps.book import get_map


def total(report, path, format_, *more):
    return report(path, "--format", format_, *more)["total"]


@pytest.mark.parametrize(
    ("format_", "line", "tokens"),
    [
        (
            "openai.chat",
            (
                '{"id": "o1", "usage": {"prompt_tokens": 17903, "completion_tokens": 20, "total_tokens": 17923, '
                '"prompt_tokens_details": {"cached_tokens": 17817}}}'
            ),
            (17903, 17817, 0, 86),
        ),
        (
            "anthropic.messages",
            (
                '{"id": "a1", "usage": {"input_tokens": 3, "cache_creation_input_tokens": 12304, '
                '"cache_read_input_tokens": 0, "output_tokens": 550}}'
            ),
            (12307, 0, 12304, 3),
        ),
        (
            "bedrock.converse",
            (
                '{"id": "b1", "usage": {"inputTokens": 6, "outputTokens": 40, "cacheReadInputTokens": 9000, '
                '"cacheWriteInputTokens": 0, "totalTokens": 9046}}'
            ),
            (9006, 9000, 0, 6),
        ),
    ],
)
def test_b18_inclusive_and_exclusive_input(log, report, format_, line, tokens):
    # https://github.com/BerriAI/litellm/issues/9812 https://github.com/langfuse/langfuse/issues/10592
    found = total(report, log([line]), format_)["tokens"]
    assert (
        found["prompt_tokens"],
        found["cached_prompt_tokens"],
        sum(found["written_prompt_tokens"].values()),
        found["uncached_prompt_tokens"],
    ) == tokens


B25 = (
    (
        '{"id": "t1", "usage": {"input_tokens": 4, "cache_creation_input_tokens": 1000, "cache_read_input_tokens": 0, '
        '"output_tokens": 1, "cache_creation": {"ephemeral_5m_input_tokens": 600, "ephemeral_1h_input_tokens": 400}}}'
    ),
    (
        '{"id": "t2", "usage": {"input_tokens": 4, "cache_creation_input_tokens": 500, "cache_read_input_tokens": 0, '
        '"output_tokens": 1, "cache_creation": null}}'
    ),
    (
        '{"id": "t3", "usage": {"input_tokens": 4, "cache_creation_input_tokens": 800, "cache_read_input_tokens": 0, '
        '"output_tokens": 1, "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 900}}}'
    ),
)


def test_b25_one_hour_writes_are_not_folded_into_five_minute_ones(log, report):
    # https://github.com/pydantic/genai-prices/issues/295
    assert total(report, log(B25[:2]), "anthropic.messages")["tokens"]["written_prompt_tokens"] == {
        "1h": 400,
        "5m": 600,
        "unknown": 500,
    }
    document = report(log(B25), "--format", "anthropic.messages")
    assert document["records"]["anomalies"] == {"ttl_split_mismatch": 1}
    assert sum(document["total"]["tokens"]["written_prompt_tokens"].values()) == 2300


def test_b27_usage_in_two_stages_and_a_disconnect(log, report):
    # https://github.com/can1357/oh-my-pi/issues/5022
    running = [
        f'{{"id": "s2", "choices": [{{"finish_reason": null}}], "usage": {{"prompt_tokens": 900, '
        f'"completion_tokens": {n}, "total_tokens": {900 + n}}}}}'
        for n in (1, 2, 3)
    ]
    path = log(
        [
            (
                '{"id": "s1", "choices": [{"finish_reason": "stop"}], "usage": {"prompt_tokens": 35227, '
                '"completion_tokens": 50, "total_tokens": 35277}}'
            ),
            (
                '{"id": "s1", "choices": [], "usage": {"prompt_tokens": 35227, "completion_tokens": 50, '
                '"total_tokens": 35277, "prompt_tokens_details": {"cached_tokens": 32512}}}'
            ),
            *running,
        ]
    )
    found = total(report, path, "vllm.chat.stream")
    assert found["requests"] == 2
    assert found["tokens"]["prompt_tokens"] == 35227
    assert found["tokens"]["cached_prompt_tokens"] == 32512
    assert found["tokens"]["unreported_prompt_tokens"] == 900
    assert found["ratios"]["usage_token_coverage"]["value"] == 35227 / 36127


ROWS = [
    '{"request_id": "k1-a", "status": "failure", "usage": null}',
    '{"request_id": "k1-b", "status": "failure", "usage": {"prompt_tokens": 0, "completion_tokens": 0}}',
    *[
        (
            '{"request_id": "k1-c", "status": "success", "usage": {"prompt_tokens": 1000, "completion_tokens": 5, '
            '"total_tokens": 1005, "prompt_tokens_details": {"cached_tokens": 800}}}'
        )
    ]
    * 2,
    *[
        (
            '{"request_id": "", "status": "success", "usage": {"prompt_tokens": 500, "completion_tokens": 5, '
            '"total_tokens": 505, "prompt_tokens_details": {"cached_tokens": 100}}}'
        )
    ]
    * 2,
]
OWN_MAP = """
format: house.rows
extends: openai.chat
title: rows of a router
id: [$.request_id]
"""


def test_b28_duplicated_rows_count_once_and_rows_without_id_are_distinct(log, report, tmp_path):
    # https://github.com/BerriAI/litellm/issues/15740
    (tmp_path / "maps").mkdir()
    (tmp_path / "maps" / "house.rows.yaml").write_text(OWN_MAP)
    document = report(log(ROWS), "--format", "house.rows", "--maps", tmp_path / "maps")
    outcomes = {row["status"]: row for row in document["total"]["outcomes"]}
    assert outcomes["success"]["requests"] == 3
    assert outcomes["success"]["input_tokens"] == 2000
    assert outcomes["success"]["cached_prompt_tokens"] == 1000
    assert outcomes["failed"]["requests"] == 2
    assert document["records"]["duplicates"] == 1
    assert document["total"]["ratios"]["usage_population_hit"]["denominator"] == 2000


def test_b29_rows_of_any_time_count_and_days_are_those_of_utc(log, report):
    # https://github.com/logtide-dev/logtide/pull/282
    times = (
        "2026-03-02T11:59:59Z",
        "2026-03-01T09:00:00Z",
        "2026-03-02T20:00:00+00:00",
        "2026-03-02T01:59:00+08:00",
        "not-a-time",
    )
    usage = {"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 0}}
    path = log([{"id": str(n), "timestamp": time, "usage": usage} for n, time in enumerate(times)])
    document = report(path, "--format", "openai.chat", "--by", "day")
    assert [(group["labels"]["day"], group["requests"]) for group in document["groups"]] == [
        ("2026-03-01", 2),
        ("2026-03-02", 2),
        ("unknown", 1),
    ]
    assert document["records"]["anomalies"] == {"bad_time": 1}


BY_FORMAT = defaultdict(list)
for _file in sorted((Path(__file__).parents[1] / "records" / "formats").glob("*.json")):
    for _case in json.loads(_file.read_text()):
        if not get_map(_case["format"]).aggregate:
            BY_FORMAT[_case["format"]].append(_case)


@pytest.mark.parametrize("format_", BY_FORMAT)
def test_every_recorded_log_adds_up_to_its_records(log, report, format_):
    """Whole blocks of lines, in which records without usage and lines that bring it later must find each other too."""
    for case in BY_FORMAT[format_]:
        path = log([])
        texts = [line if isinstance(line, str) else json.dumps(line) for line in case["lines"]]
        path.write_bytes(b"".join(text.encode("utf-8", "surrogatepass") + b"\n" for text in texts))
        found = total(report, path, format_)
        records = [one for one in case["expected"] if isinstance(one, list)]
        reported = [one for one in records if one[0] is not None and one[1] is not None]
        tokens = found["tokens"]
        assert (
            found["requests"],
            tokens["prompt_tokens"],
            tokens["cached_prompt_tokens"],
            sum(tokens["written_prompt_tokens"].values()),
            tokens["output_tokens"],
        ) == (
            len(records),
            sum(one[0] for one in reported),
            sum(one[1] for one in reported),
            sum(one[2] or 0 for one in reported),
            sum(one[4] or 0 for one in records),
        ), case["case"]
