"""The fingerprint: what a page must and must not show before a number is taken from it."""

from __future__ import annotations

import pytest

from prefix_cache_exporter.engine.apply import apply_page
from prefix_cache_exporter.engine.maps import load_maps
from prefix_cache_exporter.engine.records import MEASURES
from support.vllm_pages import vllm_page

MAPS = load_maps()


def apply(version, body, **options):
    return apply_page(MAPS, version, body, **options).as_json()


@pytest.mark.parametrize(
    ("page_of", "read_as", "reason"),
    [
        ("0.8.5", "0.9.0", "help of vllm:gpu_prefix_cache_hits says blocks"),
        ("0.9.0", "0.8.5", "help of vllm:gpu_prefix_cache_hits says tokens"),
        ("0.9.2", "0.9.1", "unexpected vllm:kv_cache_usage_perc"),
        ("0.12.0", "0.16.0", "missing vllm:prompt_tokens_by_source"),
        ("0.12.0", "0.32.0", "missing vllm:request_num_preemptions"),
        ("0.28.0", "0.32.0", "missing vllm:prompt_tokens_cached_by_source"),
        ("0.32.0", "0.28.0", "unexpected vllm:request_num_preemptions"),
        ("0.16.0", "0.20.0", "unexpected vllm:prompt_tokens_recomputed"),
        ("0.32.0", "0.12.0", "unexpected vllm:prompt_tokens_cached"),
    ],
)
def test_a_page_of_another_release_yields_nothing(page_of, read_as, reason):
    answer = apply(read_as, vllm_page(page_of, {"prompt_tokens": 5}))
    assert answer["state"] == "mismatch"
    assert reason in answer["reasons"]
    assert (answer["engines"], answer["totals"]) == ({}, {})
    assert answer["withheld"] == dict.fromkeys(MEASURES, "mismatch")


@pytest.mark.parametrize(
    ("family", "measures"),
    [
        ("prompt_tokens_cached", {"cached_prompt_tokens"}),
        ("prefix_cache_hits", {"lookup_hit_tokens"}),
        ("prompt_tokens_by_source", {"prefill_computed_tokens"}),
        ("prompt_tokens_cached_by_source", {"cached_tokens_by_tier"}),
        ("num_requests_running", {"running_requests"}),
        ("time_to_first_token_seconds", {"time_to_first_token_seconds"}),
        ("cache_config_info", {"block_size_tokens", "capacity_tokens", "prefix_caching_enabled", "hash_algorithm"}),
    ],
)
def test_a_missing_family_takes_away_only_its_measures(family, measures):
    whole = apply("0.32.0", vllm_page("0.32.0"))
    answer = apply("0.32.0", vllm_page("0.32.0", without=[family]))
    assert answer["state"] == "mismatch"
    assert answer["reasons"] == [f"missing vllm:{family}"]
    assert {name for name in answer["withheld"] if name not in whole["withheld"]} == measures
    assert {answer["withheld"][measure] for measure in measures} == {"missing"}
    assert answer["totals"].keys() - {"excluded_prompt_tokens"} == whole["totals"].keys() - measures


def test_the_prompt_tokens_of_a_page_without_cached_ones_are_excluded():
    answer = apply("0.32.0", vllm_page("0.32.0", {"prompt_tokens": 9}, without=["prompt_tokens_cached"]))
    assert answer["excluded_prompt_tokens"] == {"missing": 9}


def test_cached_tokens_without_prompt_tokens_have_no_other_side():
    answer = apply("0.32.0", vllm_page("0.32.0", {"prompt_tokens_cached": 9}, without=["prompt_tokens"]))
    assert answer["withheld"]["prompt_tokens"] == "missing"
    assert answer["withheld"]["cached_prompt_tokens"] == "prompt_tokens_unknown"


@pytest.mark.parametrize(
    ("measure", "family"),
    [
        ("block_lifetime_seconds", "kv_block_lifetime_seconds"),
        ("block_idle_before_evict_seconds", "kv_block_idle_before_evict_seconds"),
        ("block_reuse_gap_seconds", "kv_block_reuse_gap_seconds"),
    ],
)
def test_what_a_flag_hides_is_no_mismatch(measure, family):
    off = apply("0.32.0", vllm_page("0.32.0"))
    assert (off["state"], off["withheld"][measure]) == ("verified", "gated:--kv-cache-metrics")
    on = apply("0.32.0", vllm_page("0.32.0", {family: 3}, gates=["--kv-cache-metrics"]))
    assert (on["state"], on["totals"][measure]["count"]) == ("verified", 3)


def test_hidden_old_names_may_stand_beside_the_new_ones():
    flag = "--show-hidden-metrics-for-version"
    values = {"prefix_cache_queries": 10, "gpu_prefix_cache_queries": 10}
    answer = apply("0.11.0", vllm_page("0.11.0", values, gates=[flag]))
    assert (answer["state"], answer["totals"]["lookup_tokens"]) == ("verified", 10)


def test_a_family_of_another_type_is_another_page():
    body = vllm_page("0.32.0").replace(
        b"# TYPE vllm:prompt_tokens_total counter", b"# TYPE vllm:prompt_tokens_total gauge"
    )
    answer = apply("0.32.0", body)
    assert answer["state"] == "mismatch"


def test_a_gauge_that_became_a_counter_is_named():
    body = vllm_page("0.32.0").replace(b"num_requests_running gauge", b"num_requests_running histogram")
    body = body.replace(b"vllm:num_requests_running{", b"vllm:num_requests_running_sum{")
    assert apply("0.32.0", body)["reasons"] == ["type histogram of vllm:num_requests_running, not gauge"]


def test_a_help_that_says_nothing_of_the_unit_is_not_believed():
    body = vllm_page("0.12.0").replace(
        b" Prefix cache hits, in terms of number of cached tokens", b" Prefix cache hits"
    )
    assert apply("0.12.0", body)["reasons"] == ["help of vllm:prefix_cache_hits does not say tokens"]


def without(body, comment):
    return b"".join(line + b"\n" for line in body.splitlines() if not line.startswith(comment))


def test_a_page_without_help_and_types_is_taken_at_its_names():
    assert apply("0.12.0", without(vllm_page("0.12.0"), b"#"))["state"] == "verified"


@pytest.mark.parametrize(
    ("version", "page_of"),
    [("0.9.0rc1", "0.8.5"), ("0.9.0.dev5+gabc", "0.9.0"), ("0.8.6", "0.8.5"), ("0.34.0", "0.33.0")],
)
def test_of_a_release_that_was_not_read_only_help_tells_the_unit(version, page_of):
    """Blocks became tokens under the same name: a build on the way there may count either."""
    family = "vllm:prefix_cache_queries" if page_of == "0.33.0" else "vllm:gpu_prefix_cache_queries"
    answer = apply(version, without(vllm_page(page_of, {"prompt_tokens": 5}), b"# HELP"))
    assert (answer["state"], answer["totals"]) == ("mismatch", {})
    assert f"help of {family} is missing" in answer["reasons"]


@pytest.mark.parametrize("place", ["before", "after"])
def test_a_page_that_says_two_units_says_none(place):
    """Pages of several servers put together by something on the way."""
    said = b"# HELP vllm:gpu_prefix_cache_queries_total "
    tokens = vllm_page("0.9.0", {"gpu_prefix_cache_queries": 100, "prompt_tokens": 160})
    blocks = said + b"GPU prefix cache queries, in terms of number of queried blocks.\n"
    body = blocks + tokens if place == "before" else tokens + blocks
    answer = apply("0.9.0", body)
    assert answer["reasons"] == ["help of vllm:gpu_prefix_cache_queries says blocks"]
    assert answer["totals"] == {}


@pytest.mark.parametrize("version", ["0.34.0", "1.0.0", "0.33.1.dev4+gabc", "0.33.0rc2"])
def test_a_newer_version_is_unverified_only_while_its_page_looks_the_same(version):
    same = apply(version, vllm_page("0.33.0", {"prompt_tokens": 5}))
    assert (same["state"], same["metric_map"], same["totals"]["prompt_tokens"]) == ("unverified", "vllm/0.33.0", 5)
    other = apply(version, vllm_page("0.33.0", without=["prompt_tokens_cached"]))
    assert (other["state"], other["totals"]) == ("mismatch", {})
    assert other["reasons"] == ["missing vllm:prompt_tokens_cached"]


@pytest.mark.parametrize("version", ["0.6.6", "nightly", "0.1.dev12+gabc"])
def test_an_unknown_version_yields_nothing(version):
    answer = apply(version, vllm_page("0.12.0", {"prompt_tokens": 5}))
    assert (answer["state"], answer["reasons"]) == ("unknown", ["unknown_version"])
    assert (answer["metric_map"], answer["engines"], answer["totals"]) == (None, {}, {})
    assert answer["withheld"] == dict.fromkeys(MEASURES, "unknown_version")


def test_an_excerpt_says_nothing_about_the_release():
    excerpt = b'vllm:prefix_cache_queries_total{engine="0",model_name="m"} 5\n'
    answer = apply("0.32.0", excerpt)
    assert answer["totals"] == {"lookup_tokens": 5}
    assert answer["state"] == "mismatch"


def test_a_page_of_something_else_has_nothing():
    answer = apply("0.32.0", b"go_goroutines 5\n")
    assert (answer["state"], answer["engines"], answer["totals"]) == ("mismatch", {}, {})
    assert answer["withheld"]["prompt_tokens"] == "missing"


@pytest.mark.parametrize(
    ("page_of", "read_as", "family"),
    [
        ("0.10.2", "0.11.0", "request_time_per_output_token_seconds"),
        ("0.29.0", "0.30.0", "request_num_preemptions"),
        ("0.28.0", "0.31.0", "request_num_preemptions"),
    ],
)
def test_a_page_that_lacks_what_dates_it_is_not_verified(page_of, read_as, family):
    """One family may get lost on the way, so what needs it not still has a value."""
    answer = apply(read_as, vllm_page(page_of, {"prompt_tokens": 5}))
    assert (answer["state"], answer["reasons"]) == ("mismatch", [f"missing vllm:{family}"])
    assert answer["totals"]["prompt_tokens"] == 5
    newer = apply("0.34.0", vllm_page("0.33.0", {"prompt_tokens": 5}, without=["request_num_preemptions"]))
    assert (newer["state"], newer["totals"]) == ("mismatch", {})
