from __future__ import annotations

import pytest

from support.usage import counts, settled


def chat(prompt, cached, total, output=50, *, written=None, reasoning=None, provider=None):
    usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": total}
    details = {"cached_tokens": cached, "cache_write_tokens": written}
    usage["prompt_tokens_details"] = details
    if reasoning is not None:
        usage["completion_tokens_details"] = {"reasoning_tokens": reasoning}
    return {"usage": usage, **({"provider": provider} if provider else {})}


@pytest.mark.parametrize(
    ("line", "expected", "quality", "anomalies"),
    [
        # the total agrees with the rule
        (chat(1000, 600, 1050), (1000, 600, None, 400, 50), "ok", ()),
        (chat(1000, 1000, 1050), (1000, 1000, None, 0, 50), "ok", ()),
        (chat(1000, 600, None), (1000, 600, None, 400, 50), "ok", ()),
        # it agrees with the other rule alone
        (chat(1000, 600, 1650), (1600, 600, None, 1000, 50), "derived", ("sum_ne_total",)),
        (chat(100, 600, 750), (700, 600, None, 100, 50), "derived", ("cache_gt_input",)),
        # it agrees with neither
        (chat(1000, 600, 9999), (1000, 600, None, 400, 50), "anomaly", ("sum_ne_total",)),
        (chat(1000, None, 9999), (1000, None, None, None, 50), "anomaly", ("sum_ne_total",)),
        # more cached than input: a provider contradicts itself, a gateway leaves the cached tokens out
        (chat(100, 600, 150), (100, None, None, None, 50), "anomaly", ("cache_gt_input",)),
        (chat(100, 600, None), (100, None, None, None, 50), "anomaly", ("cache_gt_input",)),
        (chat(100, 600, 150, provider="X"), (700, 600, None, 100, 50), "derived", ("cache_gt_input",)),
        (chat(100, 600, 9, provider="X"), (700, 600, None, 100, 50), "anomaly", ("cache_gt_input", "sum_ne_total")),
        (chat(100, 60, 150, written=50), (100, None, None, None, 50), "anomaly", ("cache_gt_input",)),
        # reasoning beside the output, inside it, and unknown
        (chat(1000, 0, 1080, reasoning=30), (1000, 0, None, 1000, 80), "ok", ()),
        (chat(1000, 0, 1050, reasoning=30), (1000, 0, None, 1000, 50), "ok", ()),
        (chat(1000, 0, None, reasoning=30), (1000, 0, None, 1000, 50), "ok", ()),
    ],
)
def test_an_inclusive_input_and_the_reported_total(line, expected, quality, anomalies):
    (record,) = settled("openai.chat", line)
    assert (counts(record), record.quality, record.anomalies) == (expected, quality, anomalies)


def converse(input_, cached, total, output=50):
    return {
        "usage": {"inputTokens": input_, "cacheReadInputTokens": cached, "outputTokens": output, "totalTokens": total}
    }


@pytest.mark.parametrize(
    ("line", "expected", "quality", "anomalies"),
    [
        (converse(100, 600, 750), (700, 600, None, 100, 50), "ok", ()),
        (converse(100, 600, None), (700, 600, None, 100, 50), "ok", ()),
        (converse(1000, 600, 1050), (1000, 600, None, 400, 50), "derived", ("sum_ne_total",)),
        (converse(100, 600, 150), (700, 600, None, 100, 50), "anomaly", ("sum_ne_total",)),
        (converse(100, 600, 9), (700, 600, None, 100, 50), "anomaly", ("sum_ne_total",)),
    ],
)
def test_an_exclusive_input_and_the_reported_total(line, expected, quality, anomalies):
    (record,) = settled("bedrock.converse", line)
    assert (counts(record), record.quality, record.anomalies) == (expected, quality, anomalies)


@pytest.mark.parametrize(
    ("name", "line", "includes", "expected", "quality"),
    [
        ("openai.chat", chat(100, 600, 150), False, (700, 600, None, 100, 50), "override"),
        ("openai.chat", chat(1000, 600, 1650), True, (1000, 600, None, 400, 50), "override"),
        ("openai.chat", chat(100, 600, 150), True, (100, None, None, None, 50), "anomaly"),
        ("openai.chat", chat(100, None, 150), True, (100, None, None, None, 50), "cache_unknown"),
        # without the cached tokens the input is not the whole prompt
        ("openai.chat", chat(100, None, 150), False, (None, None, None, 100, 50), "cache_unknown"),
        (
            "langfuse.usage_details",
            {"usageDetails": {"input": 9, "input_cached_tokens": 5}},
            False,
            (14, 5, None, 9, None),
            "override",
        ),
        ("bedrock.converse", converse(100, 600, 750), True, (100, None, None, None, 50), "anomaly"),
    ],
)
def test_the_operators_word_decides(name, line, includes, expected, quality):
    (record,) = settled(name, line, includes=includes)
    assert (counts(record), record.quality) == (expected, quality)


def test_a_total_beside_an_output_that_nobody_told_contradicts_nothing_unless_it_is_too_small():
    usage = {"inputTokens": 18, "cacheReadInputTokens": 0, "cacheWriteInputTokens": 7502}
    (untold,) = settled("bedrock.converse", {"usage": {**usage, "totalTokens": 8023}})
    assert (counts(untold), untold.quality) == ((7520, 0, 7502, 18, None), "ok")
    (less,) = settled("bedrock.converse", {"usage": {**usage, "totalTokens": 17}})
    assert (less.quality, less.anomalies) == ("anomaly", ("sum_ne_total",))
