"""A page's levels: what stands beside each other combined, what is said once applied to all, what is withheld."""

from __future__ import annotations

import pytest

from prefix_cache_exporter.engine.apply import apply_page
from prefix_cache_exporter.engine.evaluate import Evaluator
from prefix_cache_exporter.engine.maps import load_maps
from prefix_cache_exporter.engine.page import PageReader, read_page
from prefix_cache_exporter.engine.plan import select_plan
from prefix_cache_exporter.engine.records import MEASURES
from support.vllm_pages import vllm_page

MAPS = load_maps()


def apply(version, body):
    return apply_page(MAPS, version, body).as_json()


def with_pids(gauge, version="0.10.2"):
    lines = [f'vllm:{gauge}{{engine="0",model_name="m",pid="{pid}"}} {v}\n' for pid, v in (("7", 0.0), ("8", 1.0))]
    return vllm_page(version, without=[gauge], extra="".join(lines))


@pytest.mark.parametrize(
    ("gauge", "measure"),
    [
        ("kv_cache_usage_perc", "kv_usage_ratio"),
        ("num_requests_running", "running_requests"),
        ("num_requests_waiting", "waiting_requests"),
    ],
)
def test_processes_of_one_engine_are_one_level(gauge, measure):
    answer = apply("0.10.2", with_pids(gauge))
    assert list(answer["engines"]) == ["0"]
    assert answer["totals"][measure] == 1


@pytest.mark.parametrize(
    ("gauge", "measure", "value", "why"),
    [
        ("kv_cache_usage_perc", "kv_usage_ratio", 63.5, "above_one"),
        ("kv_cache_usage_perc", "kv_usage_ratio", -0.2, "negative"),
        ("num_requests_running", "running_requests", -3, "negative"),
        ("num_requests_running", "running_requests", "NaN", "not_finite"),
        ("num_requests_waiting", "waiting_requests", 1e16, "too_large"),
        ("kv_cache_usage_perc", "kv_usage_ratio", 1e16, "too_large"),
    ],
)
def test_a_level_that_cannot_be_is_withheld(gauge, measure, value, why):
    line = f'vllm:{gauge}{{engine="0",model_name="m"}} {value}\n'
    answer = apply("0.32.0", vllm_page("0.32.0", without=[gauge], extra=line))
    assert measure not in answer["totals"]
    assert answer["withheld"][measure] == why


TTFT = "vllm:time_to_first_token_seconds"


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (
            {"bucket": '_bucket{{{},le="0.1"}} 1\n', "all": '_bucket{{{},le="+Inf"}} 2\n', "sum": "_sum{{{}}} 3.0\n"},
            None,
        ),
        ({"bucket": '_bucket{{{},le="0.1"}} 1\n', "sum": "_sum{{{}}} 3.0\n"}, "incomplete"),
        ({"bucket": '_bucket{{{},le="0.1"}} 1\n', "all": '_bucket{{{},le="+Inf"}} 2\n'}, "incomplete"),
        (
            {"bucket": '_bucket{{{},le="0.1"}} 1\n', "all": '_bucket{{{},le="inf"}} 2\n', "sum": "_sum{{{}}} 3.0\n"},
            "incomplete",
        ),
    ],
)
def test_a_histogram_that_is_cut_is_withheld(lines, why):
    """0 requests in 3 seconds would stand there."""
    labels = 'engine="0",model_name="m"'
    extra = "".join(TTFT + line.format(labels) for line in lines.values())
    answer = apply("0.32.0", vllm_page("0.32.0", without=["time_to_first_token_seconds"], extra=extra))
    assert answer["withheld"].get("time_to_first_token_seconds") == why
    if why is None:
        shown = answer["totals"]["time_to_first_token_seconds"]
        assert shown == {"count": 2, "sum": 3.0, "buckets": {"0.1": 1, "+Inf": 2}}
    assert "prompt_tokens" in answer["totals"]


@pytest.mark.parametrize("edge", ["200{0", "NaN", "", "-Inf", "inf", "1_0", " 5"])
def test_a_bucket_without_an_edge_is_left_out(edge):
    """Buckets are cumulative: without one of them the histogram is coarser and still true."""
    labels = 'engine="0",model_name="m"'
    parts = {f'_bucket{{{labels},le="{edge}"}}': 1, f'_bucket{{{labels},le="+Inf"}}': 2, f"_sum{{{labels}}}": 3.0}
    extra = "".join(f"{TTFT}{part} {value}\n" for part, value in parts.items())
    answer = apply("0.32.0", vllm_page("0.32.0", without=["time_to_first_token_seconds"], extra=extra))
    assert answer["totals"]["time_to_first_token_seconds"] == {"count": 2, "sum": 3.0, "buckets": {"+Inf": 2}}


def ttft(rungs, count, labels='engine="0",model_name="m"'):
    """A histogram as a page in text may have it, right or wrong."""
    buckets = [f'{TTFT}_bucket{{{labels},le="{edge}"}} {value}\n' for edge, value in rungs]
    return "".join(
        [*buckets, f"{TTFT}_sum{{{labels}}} 3.0\n", *([f"{TTFT}_count{{{labels}}} {count}\n"] if count else [])]
    )


@pytest.mark.parametrize(
    ("rungs", "count", "why"),
    [
        ([("0.1", 1), ("1.0", 4), ("+Inf", 5)], 5, None),
        ([("1.0", 4), ("+Inf", 5), ("0.1", 1)], 5, None),  # order is no meaning
        ([("0.1", 1), ("1.0", 4), ("+Inf", 5)], None, None),  # the last bucket says it
        ([("0.1", 4), ("1.0", 1), ("+Inf", 5)], 5, "torn_histogram"),
        ([("0.1", 1), ("1.0", 6), ("+Inf", 5)], 5, "torn_histogram"),
        ([("0.1", 1), ("1.0", 4), ("+Inf", 5)], 6, "torn_histogram"),
        ([("0.1", 1), ("1.0", 4), ("+Inf", 5)], 4, "torn_histogram"),
        ([("1", 1), ("1.0", 2), ("+Inf", 5)], 5, "torn_histogram"),  # one edge, said in two ways
        ([("0.1", 1), ("1.0", "NaN"), ("+Inf", 5)], 5, "not_finite"),
    ],
)
def test_a_histogram_that_does_not_hold_together_is_withheld_alone(rungs, count, why):
    """OpenMetrics refuses such a page; text says nothing about it."""
    answer = apply("0.32.0", vllm_page("0.32.0", without=[TTFT.removeprefix("vllm:")], extra=ttft(rungs, count)))
    assert answer["withheld"].get("time_to_first_token_seconds") == why
    assert answer["anomalies"] == ({why: 1} if why else {})
    assert answer["totals"].get("time_to_first_token_seconds", {}).get("count") == (None if why else 5)
    assert answer["totals"]["prompt_tokens"] == 0


def test_what_is_taken_from_a_histograms_sum_is_no_better_than_the_histogram():
    family, labels = "vllm:request_prefill_kv_computed_tokens", 'engine="0",model_name="m"'
    torn = f'{family}_bucket{{{labels},le="+Inf"}} 3\n{family}_count{{{labels}}} 4\n{family}_sum{{{labels}}} 90\n'
    answer = apply("0.13.0", vllm_page("0.13.0", without=["request_prefill_kv_computed_tokens"], extra=torn))
    assert answer["withheld"]["prefill_computed_tokens"] == "torn_histogram"


def test_a_torn_histogram_of_one_rank_is_that_ranks():
    rungs = [("0.1", 1), ("+Inf", 5)]
    extra = ttft(rungs, 5) + ttft(rungs, 4, 'engine="1",model_name="m"')
    body = vllm_page("0.32.0", engines=[0, 1], without=[TTFT.removeprefix("vllm:")], extra=extra)
    engines = apply("0.32.0", body)["engines"]
    assert engines["0"]["measures"]["time_to_first_token_seconds"]["value"]["count"] == 5
    assert engines["1"]["withheld"]["time_to_first_token_seconds"] == "torn_histogram"


def test_a_replica_without_its_histogram_yet_cuts_nobody_elses():
    full = "".join(
        f"{TTFT}{part} {value}\n"
        for part, value in (
            ('_bucket{engine="0",model_name="m",pid="7",le="+Inf"}', 2),
            ('_sum{engine="0",model_name="m",pid="7"}', 3),
        )
    )
    other = 'vllm:prompt_tokens_total{engine="0",model_name="m",pid="8"} 5\n'
    body = vllm_page("0.32.0", without=["time_to_first_token_seconds", "prompt_tokens"], extra=full + other)
    answer = apply("0.32.0", body)
    assert answer["totals"]["time_to_first_token_seconds"]["count"] == 2


def test_a_start_time_alone_is_no_counter():
    """A counter that was renamed, while only its `_created` kept the name, is missing: it does not stand at 0."""
    created = 'vllm:prompt_tokens_created{engine="0",model_name="m"} 1.79e9\n'
    answer = apply("0.32.0", vllm_page("0.32.0", without=["prompt_tokens"], extra=created))
    assert (answer["state"], answer["reasons"]) == ("mismatch", ["missing vllm:prompt_tokens"])
    assert answer["withheld"]["prompt_tokens"] == "missing"


def test_counters_of_several_processes_are_added():
    lines = "".join(
        f'vllm:prompt_tokens_total{{engine="0",model_name="m",pid="{pid}"}} {v}\n' for pid, v in (("7", 5), ("8", 6))
    )
    assert apply("0.32.0", vllm_page("0.32.0", without=["prompt_tokens"], extra=lines))["totals"]["prompt_tokens"] == 11


def test_levels_of_ranks_are_added_averaged_or_the_same():
    values = {
        "num_requests_running@0": 2,
        "num_requests_running@1": 5,
        "kv_cache_usage_perc@0": 0.2,
        "kv_cache_usage_perc@1": 0.4,
        "engine_sleep_state{awake}@0": 1,
        "engine_sleep_state{awake}@1": 1,
    }
    answer = apply("0.32.0", vllm_page("0.32.0", values, engines=[0, 1]))
    totals = answer["totals"]
    assert totals["running_requests"] == 7
    assert totals["kv_usage_ratio"] == pytest.approx(0.3)
    assert totals["sleep_state"]["awake"] == 1
    assert totals["block_size_tokens"] == 16
    assert answer["engines"]["1"]["measures"]["running_requests"]["value"] == 5


def test_ranks_that_sleep_differently_have_no_common_state():
    values = {"engine_sleep_state{awake}@0": 1, "engine_sleep_state{discard_all}@1": 1}
    answer = apply("0.32.0", vllm_page("0.32.0", values, engines=[0, 1]))
    assert "sleep_state" not in answer["totals"]
    assert answer["engines"]["1"]["measures"]["sleep_state"]["value"]["discard_all"] == 1


@pytest.mark.parametrize(("said", "value"), [("True", 1), ("False", 0)])
def test_whether_prefix_caching_is_on(said, value):
    answer = apply("0.32.0", vllm_page("0.32.0", info={"enable_prefix_caching": said}))
    assert answer["totals"]["prefix_caching_enabled"] == value


@pytest.mark.parametrize(
    ("label", "said", "measure", "reason"),
    [
        ("enable_prefix_caching", "None", "prefix_caching_enabled", "not_reported"),
        ("enable_prefix_caching", "maybe", "prefix_caching_enabled", "not_a_number"),
        ("block_size", "None", "block_size_tokens", "not_reported"),
        ("block_size", "auto", "block_size_tokens", "not_a_number"),
        ("block_size", "0", "block_size_tokens", "not_a_number"),
        ("block_size", "inf", "block_size_tokens", "not_a_number"),
        ("block_size", "1_6", "block_size_tokens", "not_a_number"),
        ("block_size", "1e300", "block_size_tokens", "not_a_number"),
        ("prefix_caching_hash_algo", "None", "hash_algorithm", "not_reported"),
    ],
)
def test_what_is_not_said_is_not_guessed(label, said, measure, reason):
    answer = apply("0.32.0", vllm_page("0.32.0", info={label: said}))
    assert answer["withheld"][measure] == reason
    assert measure not in answer["totals"]


def test_a_capacity_that_no_engine_has():
    """Blocks times their size, where each could be."""
    answer = apply("0.22.0", vllm_page("0.22.0", info={"block_size": "1e12", "num_gpu_blocks": "1e12"}))
    assert (answer["withheld"]["capacity_tokens"], answer["totals"]["block_size_tokens"]) == ("too_large", 1e12)


def test_the_hash_algorithm_is_a_name_of_each_engine():
    answer = apply("0.32.0", vllm_page("0.32.0"))
    shown = answer["engines"]["0"]["measures"]["hash_algorithm"]
    assert shown == {"value": "sha256", "unit": "name", "family": "vllm:cache_config_info"}


def info_line(engine, size):
    return f'vllm:cache_config_info{{engine="{engine}",block_size="{size}"}} 1\n'


def test_each_ranks_own_configuration():
    body = vllm_page("0.32.0", engines=[0, 1], without=["cache_config_info"], extra=info_line(0, 16) + info_line(1, 32))
    answer = apply("0.32.0", body)
    assert [engine["measures"]["block_size_tokens"]["value"] for engine in answer["engines"].values()] == [16, 32]
    assert "block_size_tokens" not in answer["totals"]


def test_one_rank_with_two_configurations_has_none():
    twice = info_line(0, 16) + info_line(0, 32).replace("engine=", 'ReplicaId="b",engine=')
    answer = apply("0.32.0", vllm_page("0.32.0", without=["cache_config_info"], extra=twice))
    assert answer["withheld"]["block_size_tokens"] == "ambiguous"


def test_replicas_that_sleep_differently_have_no_state():
    lines = "".join(
        f'vllm:engine_sleep_state{{engine="0",model_name="m",ReplicaId="{r}",sleep_state="awake"}} {v}\n'
        for r, v in (("a", 1), ("b", 0))
    )
    answer = apply("0.32.0", vllm_page("0.32.0", without=["engine_sleep_state"], extra=lines))
    assert answer["withheld"]["sleep_state"] == "ambiguous"


@pytest.mark.parametrize("odd", ["NaN", "+Inf"])
def test_a_level_that_is_not_finite(odd):
    line = f'vllm:num_requests_running{{engine="0",model_name="m"}} {odd}\n'
    answer = apply("0.32.0", vllm_page("0.32.0", without=["num_requests_running"], extra=line))
    assert answer["withheld"]["running_requests"] == "not_finite"


def test_a_configuration_alone_is_an_engine():
    answer = apply("0.32.0", b'vllm:cache_config_info{block_size="16"} 1\n')
    assert answer["engines"]["0"]["measures"]["block_size_tokens"]["value"] == 16


def test_two_models_with_one_rank_stay_apart():
    other = vllm_page("0.32.0", {"prompt_tokens": 6}, model="n", started=None, without=["cache_config_info"])
    body = vllm_page("0.32.0", {"prompt_tokens": 5}) + other.replace(b"vllm:admission_rejections_total{", b"vllm:x{")
    answer = apply("0.32.0", body)
    assert list(answer["engines"]) == ["0/m", "0/n"]
    assert answer["totals"]["prompt_tokens"] == 11


def test_a_measure_that_one_engine_lacks_has_no_total():
    body = b'vllm:prompt_tokens_total{engine="0"} 5\nvllm:generation_tokens_total{engine="0"} 1\n'
    answer = apply("0.32.0", body + b'vllm:generation_tokens_total{engine="1"} 1\n')
    assert answer["withheld"]["prompt_tokens"] == "no_series"
    assert "prompt_tokens" not in answer["totals"]
    assert answer["engines"]["0"]["measures"]["prompt_tokens"]["value"] == 5
    assert answer["engines"]["1"]["withheld"]["prompt_tokens"] == "no_series"


def test_both_sides_of_a_sum_must_be_there():
    body = b'vllm:prefix_cache_hits_total{engine="0"} 5\nvllm:external_prefix_cache_hits_total{engine="1"} 1\n'
    answer = apply("0.12.0", body)
    assert answer["withheld"]["cached_prompt_tokens"] == "no_series"


def test_a_family_without_series_has_no_value():
    body = vllm_page("0.32.0", without=["prompt_tokens"], extra="# TYPE vllm:prompt_tokens_total counter\n")
    assert apply("0.32.0", body)["withheld"]["prompt_tokens"] == "no_series"


def test_histograms_of_ranks_are_added_bucket_by_bucket():
    values = {"time_to_first_token_seconds@0": 2, "time_to_first_token_seconds@1": 3}
    totals = apply("0.32.0", vllm_page("0.32.0", values, engines=[0, 1]))["totals"]
    assert totals["time_to_first_token_seconds"] == {
        "count": 5,
        "sum": 5.0,
        "buckets": {"100.0": 5, "1000.0": 5, "+Inf": 5},
    }


def test_a_second_page_is_evaluated_as_the_first(monkeypatch):
    resolved = MAPS.resolve("0.32.0")
    reader, remembering = PageReader(resolved.wanted), Evaluator()
    for number in range(4):
        if number == 3:
            monkeypatch.setattr("prefix_cache_exporter.engine.evaluate._REMEMBERED", 10)
        body = vllm_page("0.32.0", {"prompt_tokens": number}, extra=f"vllm:prompt_tokens_created {number}\n")
        page = reader.read(body, None)
        plan = select_plan(resolved, page)
        fresh = Evaluator().read(plan, read_page(body, None, resolved.wanted))
        assert remembering.read(plan, page) == fresh


def test_every_measure_is_known():
    assert len(set(MEASURES)) == len(MEASURES)
    assert "excluded_prompt_tokens" not in MEASURES
