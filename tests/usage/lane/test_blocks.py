from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from math import inf
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefix_cache_exporter.release import Release
from prefix_cache_exporter.report.reading import Reading
from prefix_cache_exporter.usage.count import Counting
from prefix_cache_exporter.usage.count_many import count_group, count_sums, label_sums, on_time
from prefix_cache_exporter.usage.eligible import Eligibility
from prefix_cache_exporter.usage.intake import Intake
from prefix_cache_exporter.usage.lane import blocks as blocks_module
from prefix_cache_exporter.usage.lane import compiled
from prefix_cache_exporter.usage.lane.blocks import Blocks
from prefix_cache_exporter.usage.lane.sums import EVERYTHING, Bounds
from prefix_cache_exporter.usage.maps.book import get_map
from prefix_cache_exporter.usage.namespaces import Protector
from prefix_cache_exporter.usage.paths import parse_path
from prefix_cache_exporter.usage.prices.book import PriceBook
from prefix_cache_exporter.usage.prices.money import record_of
from prefix_cache_exporter.usage.record import Duplicate, UsageRecord
from prefix_cache_exporter.usage.tally import Tally, TokenSums


@pytest.fixture(scope="module", autouse=True, params=["python", "compiled"] if compiled.BUILT else ["python"])
def way(request):
    """Every test holds for the compiled way and for that without a compiler."""
    with mock.patch.object(compiled, "BUILT", request.param == "compiled"):
        yield


FIELDS = {"template": "$.metadata.template", "task": "$.task"}


def readers(format_, *, label=None, **options):
    options = {"protect": Protector(), **options}
    fields = {name: parse_path(path) for name, path in FIELDS.items()}
    intake, alone = (Intake(get_map(format_), fields=FIELDS, **options) for _ in range(2))
    blocks = Blocks(get_map(format_), intake.lane, fields=fields, label=label, protect=options["protect"])
    return blocks, intake, alone


def told(record):
    """A record as far as counting goes: everything but its id."""
    values = {name: getattr(record, name) for name in record.__struct_fields__ if name != "id"}
    return json.dumps(values, sort_keys=True)


def both(format_, lines, **options):
    """What blocks and the general way make of lines, and what the general way alone makes of them."""
    blocks, general, alone = readers(format_, **options)
    ours: Counter[str] = Counter()
    reading = Reading(general, blocks)
    for at in range(0, len(lines), 16):
        part = b"".join(line + b"\n" for line in lines[at : at + 16])
        taken = blocks.take(part)
        assert taken.lines == sum(bool(line.strip()) for line in lines[at : at + 16])
        ours["duplicates"] += taken.repeats
        for found in [*taken.groups, *reading._general(taken.odd, "")]:
            if isinstance(found, UsageRecord):
                ours[told(found)] += 1
            else:
                ours.update(told(record_of(found.sample, row)) for row in found.rows)
    ours["duplicates"] += reading.duplicates
    theirs: Counter[str] = Counter()
    for outcome in alone.take([line for line in lines if line.strip()], 0.0):
        if isinstance(outcome, UsageRecord):
            theirs[told(outcome)] += 1
        elif isinstance(outcome, Duplicate):
            theirs["duplicates"] += 1
    if general.merger.open_records:  # a line without usage after one of a block: told when it has waited in vain
        del ours["duplicates"], theirs["duplicates"]
    return +ours, +theirs


def chat(number, **changes):
    prompt = 100 + number
    return {
        "id": f"c{number}",
        "created": 1790000000 + number,
        "model": f"m{number % 2}",
        "service_tier": "default",
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": 7,
            "total_tokens": prompt + 7,
            "prompt_tokens_details": {"cached_tokens": number % 3 * 32},
        },
        "metadata": {"template": f"t{number % 3}"},
        **changes,
    }


def message(number, **changes):
    write = number % 4 * 10
    return {
        "id": f"m{number}",
        "model": "claude-opus-5",
        "timestamp": "2026-09-21T12:00:00Z",
        "usage": {
            "input_tokens": number,
            "cache_read_input_tokens": number % 3 * 100,
            "cache_creation_input_tokens": write,
            "cache_creation": {"ephemeral_5m_input_tokens": write // 2, "ephemeral_1h_input_tokens": 0},
            "output_tokens": 3,
        },
        "task": "qa",
        **changes,
    }


def content(number, **changes):
    usage = {"promptTokenCount": 100 + number, "candidatesTokenCount": 7, "totalTokenCount": 107 + number}
    if number % 3:  # zeros are left out
        usage["cachedContentTokenCount"] = number % 3 * 32
    if number % 4:
        usage["thoughtsTokenCount"] = number
        usage["totalTokenCount"] += number
    return {
        "id": f"c{number}",
        "responseId": f"g{number}",
        "createTime": f"2026-09-21T12:{number % 60:02}:00.123456Z",
        "modelVersion": f"m{number % 2}",
        "usageMetadata": usage,
        "metadata": {"template": f"t{number % 3}"},
        **changes,
    }


SHAPES = {
    "openai.chat": chat, "vllm.chat": chat, "anthropic.messages": message, "deepseek.chat": chat,
    "google.generate_content": content,
}  # fmt: skip
WILD = st.sampled_from([None, 0, -1, 1.5, "7", "x" * 600, "", True, [], {}, {"a": 1}, 2**60, "2026-01-01", 1e300])
PLACES = st.sampled_from(
    [
        ("id",), ("model",), ("created",), ("timestamp",), ("usage",), ("usage", "prompt_tokens"), ("metadata",),
        ("usage", "completion_tokens"), ("usage", "total_tokens"), ("usage", "prompt_tokens_details"), ("task",),
        ("usage", "prompt_tokens_details", "cached_tokens"), ("metadata", "template"), ("error",), ("status",),
        ("usage", "input_tokens"), ("usage", "output_tokens"), ("usage", "cache_read_input_tokens"), ("service_tier",),
        ("usage", "cache_creation_input_tokens"), ("usage", "cache_creation", "ephemeral_1h_input_tokens"), ("new",),
        ("usage", "cache_creation"), ("usage", "prompt_cache_hit_tokens"), ("usage", "iterations"), ("createTime",),
        ("usageMetadata", "promptTokenCount"), ("usageMetadata", "cachedContentTokenCount"), ("responseId",),
        ("usageMetadata", "thoughtsTokenCount"), ("usageMetadata", "totalTokenCount"), ("usageMetadata",),
        ("usageMetadata", "toolUsePromptTokenCount"), ("response",),
    ]
)  # fmt: skip
CHANGES = st.lists(st.tuples(st.integers(0, 79), PLACES, WILD, st.booleans()), max_size=12)


def changed(record, place, value, remove):
    inner = record
    for key in place[:-1]:
        if not isinstance(inner.get(key), dict):
            return
        inner = inner[key]
    if remove:
        inner.pop(place[-1], None)
    else:
        inner[place[-1]] = value


def logged(format_, changes, repeated, everywhere, twins=()):
    records = [SHAPES[format_](number) for number in range(80)]
    for number, other in twins:
        records[number]["id"] = records[other]["id"]
    for number, place, value, remove in changes:
        for record in records if everywhere else [records[number]]:
            changed(record, place, value, remove)
    return [json.dumps(record).encode() for record in [*records, *(records[number] for number in repeated)]]


@pytest.mark.parametrize("format_", SHAPES)
@settings(deadline=None, max_examples=40)
@given(
    CHANGES,
    st.lists(st.integers(0, 79), max_size=5),
    st.booleans(),
    st.sampled_from([1, 100]),
    st.lists(st.tuples(st.integers(0, 79), st.integers(0, 79)), max_size=5),
)
def test_blocks_and_the_general_way_give_the_same_records(format_, changes, repeated, everywhere, enough, twins):  # noqa: PLR0917  # what hypothesis gives
    with mock.patch.object(blocks_module, "_ENOUGH", enough):
        ours, theirs = both(format_, logged(format_, changes, repeated, everywhere, twins))
    assert ours == theirs


def counted(format_, lines, inventory, *, now, summing):
    counting = Counting(release=lambda: Release("t1", "r1"), prices=PriceBook(), eligibility=Eligibility(inventory))
    label = partial(label_sums, counting) if summing else None
    blocks, intake, _ = readers(format_, label=label, models={"m0": "gpt-4o", "m1": "gpt-6-sol"})
    blocks.window = on_time(now)
    tally = Tally("source")
    for at in range(0, len(lines), 16):
        taken = blocks.take(b"".join(line + b"\n" for line in lines[at : at + 16]))
        for group in taken.groups:
            count_group(counting, group, tally, now)
        for record in intake.take(taken.odd, 0.0):
            if isinstance(record, UsageRecord):
                counting.count(record, tally, now)
    for sums in blocks.sums():
        count_sums(counting, sums, tally, now)
    rows = {
        labels: {name: getattr(sums, name) or 0 for name in TokenSums.__slots__} for labels, sums in tally.rows.items()
    }
    return rows, tally.more, tally.events, tally.seconds


@pytest.mark.parametrize("enough", [1, 100])
@pytest.mark.parametrize("models", [["a"], ["a", "b"], ["gpt-4o", "gpt-5"]])
def test_lines_are_told_apart_by_their_words_however_few_there_are(models, enough):
    lines = [
        json.dumps({"model": models[number % len(models)], "usage": chat(number)["usage"]}).encode()
        for number in range(40)
    ]
    with mock.patch.object(blocks_module, "_ENOUGH", enough):
        ours, theirs = both("openai.chat", lines)
    assert ours == theirs


@pytest.mark.parametrize("format_", SHAPES)
@settings(deadline=None, max_examples=20)
@given(CHANGES, st.lists(st.integers(0, 79), max_size=5), st.booleans(), st.integers(-90_000, 90_000), st.booleans())
def test_sums_and_rows_count_the_same(format_, changes, repeated, everywhere, late, registered):  # noqa: PLR0917  # what hypothesis gives
    lines, now = logged(format_, changes, repeated, everywhere), 1790000040.0 + late
    inventory = mock.Mock(tokens=lambda template, _revision, _model: 64 if template == "t1" else None, rules=())
    summed, rowed = (
        counted(format_, lines, inventory if registered else None, now=now, summing=summing)
        for summing in (True, False)
    )
    assert summed == rowed


def test_sums_are_taken_out_when_there_are_too_many():
    lines = [json.dumps(chat(number, task=f"task-{number}")).encode() for number in range(5000)]
    blocks, _, _ = readers("openai.chat", label=lambda *_: ("label", EVERYTHING), protect=dict)
    taken = blocks.take(b"\n".join(lines))
    assert sum(sums.requests for sums in taken.sums) == 5000
    assert blocks.sums() == []


def test_what_nobody_expected_costs_three_blocks_at_most():
    blocks, _, _ = readers("openai.chat")

    def odd(start, **changes):
        lines = [json.dumps(chat(start + number, **(changes if number == 7 else {}))).encode() for number in range(120)]
        return len(blocks.take(b"\n".join(lines)).odd)

    assert [odd(1000 * at, model="new") for at in range(6)] == [0, 0, 0, 0, 0, 0]  # learnt from the first block
    assert [odd(1000 * at, model="newer") for at in range(6, 12)] == [1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize("format_", SHAPES)
def test_lines_of_one_shape_are_taken_in_as_blocks(format_):
    lines = [json.dumps(SHAPES[format_](number)).encode() for number in range(64)]
    blocks, _, _ = readers(format_)
    taken = blocks.take(b"\n".join(lines) + b"\n")
    assert (taken.odd, taken.repeats, taken.lines) == ([], 0, 64)
    assert sum(len(group.rows) for group in taken.groups) == 64


@pytest.mark.parametrize(
    "line",
    [b"", b"not json", b"[]", b'{"id": "x"}', b"\xff", b"[" * 100_000, b"data: [DONE]"],
    ids=["blank", "text", "array", "no usage", "bytes", "deep", "event"],
)
def test_other_lines_go_the_general_way(line):
    plain = [json.dumps(chat(number)).encode() for number in range(40)]
    ours, theirs = both("openai.chat", [*plain[:20], line, *plain[20:]])
    assert ours == theirs
    assert sum(ours.values()) >= 40


@pytest.mark.parametrize(
    "odd", [{"model": None, "usage": {"prompt_tokens": "5", "completion_tokens": 1}}, {"error": 1}]
)
def test_of_lines_with_one_id_the_first_counts_in_whichever_way_it_goes(odd):
    plain = [chat(number) for number in range(40)]
    plain[20] = {**chat(20), **odd}
    plain[25] = chat(25, id="c20")  # after the odd one
    plain[19] = chat(19, id="c30")
    plain[30] = {**chat(30), **odd}  # after the plain one
    ours, theirs = both("openai.chat", [json.dumps(record).encode() for record in plain])
    assert ours == theirs
    assert ours["duplicates"] == 2


def test_lines_for_the_general_way_stay_in_order():
    records = [chat(number) for number in range(40)]
    records[5]["usage"]["total_tokens"] = 1  # declined after it was decoded
    records[7]["usage"]["prompt_tokens"] = "8"  # not decoded
    records[9]["usage"]["total_tokens"] = 1
    blocks, _, _ = readers("openai.chat")
    odd = blocks.take(b"\n".join(json.dumps(record).encode() for record in records)).odd
    assert [json.loads(line)["id"] for line in odd] == ["c5", "c7", "c9"]


def test_a_log_whose_shape_changes_is_learnt_anew():
    old = [json.dumps(chat(number)).encode() for number in range(64)]
    new = [
        json.dumps(chat(number + 100, status="ok", created=None, timestamp="2026-09-21")).encode()
        for number in range(64)
    ]
    blocks, _, _ = readers("openai.chat")
    assert not blocks.take(b"\n".join(old)).odd
    assert len(blocks.take(b"\n".join(new)).odd) == 64
    assert not blocks.take(
        b"\n".join(json.dumps(chat(n + 500, created=None, timestamp="2026-09-21")).encode() for n in range(64))
    ).odd
    ours, theirs = both("openai.chat", old + new)
    assert ours == theirs


def test_a_log_without_a_shape_is_left_to_the_general_way():
    blocks, _, _ = readers("openai.chat")
    for _ in range(10):
        assert blocks.take(b'{"a": 1}\n' * 5).lines == 5
    assert blocks.take(json.dumps(chat(1)).encode()).odd == [json.dumps(chat(1)).encode()]
    stream, _, _ = readers("openai.chat.stream")
    assert len(stream.take(json.dumps(chat(1)).encode()).odd) == 1


def test_many_combinations_of_words_are_not_all_kept():
    blocks, _, _ = readers("openai.chat")
    for start in range(0, 10_000, 1000):
        lines = [json.dumps(chat(number, model=f"m{number}")).encode() for number in range(start, start + 1000)]
        assert len(blocks.take(b"\n".join(lines)).groups) == 1000
    assert len(blocks._samples._known) <= 4096


def test_words_that_make_a_line_special_go_the_general_way_and_their_ids_are_remembered_once():
    failed = [chat(number, status="failed" if number % 2 else "success") for number in range(32)]
    lines = [json.dumps(record).encode() for record in [*failed, *failed]]
    ours, theirs = both("vllm.chat", lines)
    assert ours == theirs
    assert ours["duplicates"] == 32


def test_fields_of_many_values_keep_one_sample_for_each_label():
    lines = [json.dumps(chat(number, task=f"task-{number % 5}", model="m")).encode() for number in range(60)]
    blocks, _, _ = readers("openai.chat")
    blocks.take(b"\n".join(lines[:20]))
    first = blocks.take(b"\n".join(lines[20:40])).groups
    second = blocks.take(b"\n".join(lines[40:])).groups
    assert {id(group.sample) for group in first} == {id(group.sample) for group in second}
    assert len(first) == 15  # five tasks times three templates
    ours, theirs = both("openai.chat", lines, protect=lambda found: {"task": "same"} if found else {})
    assert ours == theirs


def test_what_columns_cannot_do_is_left_to_the_general_way():
    def tells(**changes):
        lines = [json.dumps(chat(number, **changes)).encode() for number in range(20)]
        ours, theirs = both("openai.chat", lines)
        assert ours == theirs
        return readers("openai.chat")[0].take(b"\n".join(lines)).odd

    usage = {"prompt_tokens": 10, "completion_tokens": 1}
    assert tells(usage=usage) == []  # cache usage is not reported
    assert tells(usage=usage | {"prompt_tokens_details": {"cache_write_tokens": 3}})
    assert tells(created=1.5) == []
    assert tells(timestamp="2026-09-21T12:00:00Z")  # two times
    assert tells(usage={"prompt_tokens": 10})


@pytest.mark.parametrize("format_", SHAPES)
@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(-40, 40)), min_size=1, max_size=60),
    st.lists(st.tuples(st.integers(-40, 40), st.integers(-40, 40)), min_size=6, max_size=6),
)
def test_each_sum_keeps_to_its_own_times(format_, told, bounds):
    """Records of several models, each summed within times of its own, in any order."""
    base = 1790000000
    lines = []
    for number, (model, offset) in enumerate(told):
        time = base + offset
        text = datetime.fromtimestamp(time, UTC).isoformat()
        when = {"timestamp": text} if format_ == "anthropic.messages" else {"created": time, "createTime": text}
        names = {"modelVersion": f"m{model}"} if format_ == "google.generate_content" else {"model": f"m{model}"}
        lines.append(json.dumps(SHAPES[format_](number, **names, **when)).encode())
    places = {f"m{model}": Bounds(low=base + min(pair), high=base + max(pair)) for model, pair in enumerate(bounds)}
    blocks, _, _ = readers(format_, label=lambda sample, *_: ("label", places[sample.model]))
    rows: Counter[tuple[str, float]] = Counter()
    for at in range(0, len(lines), 7):
        taken = blocks.take(b"\n".join(lines[at : at + 7]))
        assert not taken.odd
        for group in taken.groups:
            rows.update((group.sample.model, row[6]) for row in group.rows)
    whole = Counter((f"m{model}", float(base + offset)) for model, offset in told)
    assert rows <= whole
    summed: Counter[str] = Counter()
    for one in blocks.sums():
        summed[one.sample.model] += one.requests
        assert places[one.sample.model].low <= one.time <= places[one.sample.model].high
    within = whole - rows
    assert summed == Counter(model for model, _ in within.elements())
    assert all(places[model].low <= time <= places[model].high for model, time in within)
    times = [time for _, time in within]
    assert blocks.times.span == ((min(times), max(times)) if times else (inf, -inf))
