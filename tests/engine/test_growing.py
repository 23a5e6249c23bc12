"""Pages that grow family by family, as a V0 server of 0.8.5 wrote them: at its start, idle, and once asked."""

from __future__ import annotations

import pytest

from prefix_cache_exporter.engine.maps import load_maps
from prefix_cache_exporter.engine.page import read_page
from prefix_cache_exporter.engine.plan import select_plan
from prefix_cache_exporter.engine.verify import verify
from support.engine_target import Target, counted

AT_START = """\
# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="128",enable_prefix_caching="True",num_gpu_blocks="512"} 1.0
"""
IDLE = """\
# HELP vllm:iteration_tokens_total Histogram of number of tokens per engine_step.
# TYPE vllm:iteration_tokens_total histogram
vllm:iteration_tokens_total_sum{model_name="tiny"} 0.0
vllm:iteration_tokens_total_bucket{le="1.0",model_name="tiny"} 1.0
vllm:iteration_tokens_total_bucket{le="+Inf",model_name="tiny"} 1.0
vllm:iteration_tokens_total_count{model_name="tiny"} 1.0
# HELP vllm:num_preemptions_total Cumulative number of preemption from the engine.
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{model_name="tiny"} 0.0
# HELP vllm:prompt_tokens_total Number of prefill tokens processed.
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{model_name="tiny"} 0.0
# HELP vllm:generation_tokens_total Number of generation tokens processed.
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{model_name="tiny"} 0.0
# HELP vllm:num_requests_running Number of requests currently running on GPU.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="tiny"} 0.0
# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{model_name="tiny"} 0.0
# HELP vllm:gpu_cache_usage_perc GPU KV-cache usage. 1 means 100 percent usage.
# TYPE vllm:gpu_cache_usage_perc gauge
vllm:gpu_cache_usage_perc{model_name="tiny"} 0.0
"""
HISTOGRAMS = (
    *("time_to_first_token_seconds", "time_per_output_token_seconds", "e2e_request_latency_seconds"),
    *("request_queue_time_seconds", "request_prefill_time_seconds", "request_generation_tokens"),
)
OBSERVED = """\
# TYPE vllm:{0} histogram
vllm:{0}_sum{{model_name="tiny"}} 0.5
vllm:{0}_bucket{{le="1.0",model_name="tiny"}} 1.0
vllm:{0}_bucket{{le="+Inf",model_name="tiny"}} 1.0
vllm:{0}_count{{model_name="tiny"}} 1.0
"""
COUNTED = IDLE.replace('prompt_tokens_total{model_name="tiny"} 0', 'prompt_tokens_total{model_name="tiny"} 474')
ASKED_ONCE = (
    COUNTED.replace('generation_tokens_total{model_name="tiny"} 0', 'generation_tokens_total{model_name="tiny"} 8')
    + "".join(map(OBSERVED.format, HISTOGRAMS))
    + "# TYPE vllm:request_success_total counter\n"
    + 'vllm:request_success_total{finished_reason="length",model_name="tiny"} 1.0\n'
)
PAGES = [AT_START, AT_START + IDLE, AT_START + ASKED_ONCE]


def verdict(page: str) -> tuple[str, tuple[str, ...]]:
    found = load_maps().resolve("0.8.5")
    read = read_page(page.encode(), None, found.wanted)
    plan = select_plan(found, read)
    assert plan.dialect.name == "v0"
    verification = verify(plan, read)
    return verification.state, verification.reasons


@pytest.mark.parametrize("page", PAGES)
def test_a_page_that_has_not_grown_yet_is_believed(page):
    assert verdict(page) == ("verified", ())


@pytest.mark.parametrize("first", [AT_START, AT_START + IDLE])
def test_what_a_page_shows_first_was_counted_since_the_page_before(first):
    target = Target("0.8.5")
    assert target.see(first.encode()).withheld["finished_requests"] == "no_series"
    delta = target.see((AT_START + ASKED_ONCE).encode())
    assert counted(delta, "excluded_prompt_tokens", "generation_tokens", "finished_requests") == {
        ("excluded_prompt_tokens", "0"): 474,
        ("generation_tokens", "0"): 8,
        ("finished_requests", "0"): 1,
    }
    [engine] = delta.engines.values()
    assert engine.increases["request_seconds", "", "+Inf"] == 1
    assert (engine.excluded, delta.anomalies) == ("gauge_only", {})  # V0 tells no sides


def test_a_grown_page_lacks_nothing():
    without = "".join(line for line in PAGES[-1].splitlines(keepends=True) if "vllm:prompt_tokens" not in line)
    assert verdict(without) == ("mismatch", ("missing vllm:prompt_tokens",))


def test_a_page_of_something_else_has_not_grown_into_one():
    state, reasons = verdict("# TYPE python_info gauge\npython_info 1\n")
    assert (state, reasons[0]) == ("mismatch", "missing vllm:cache_config_info")
