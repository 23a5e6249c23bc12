"""What HELP says: what a number is, and what a source made it of."""

from __future__ import annotations

import pytest

from prefix_cache_exporter.labels import Limits
from prefix_cache_exporter.measures import ENGINE
from prefix_cache_exporter.recorder import Change, Recorder
from prefix_cache_exporter.state import Store
from support.engine_source import Bench
from support.page import page
from support.vllm_pages import vllm_page


def help_of(recorder, name):
    [line] = [line for line in page(recorder).splitlines() if line.startswith(f"# HELP {name} ")]
    return line.removeprefix(f"# HELP {name} ")


@pytest.mark.parametrize(
    ("version", "name", "origin"),
    [
        ("0.9.2", "cached_prompt_tokens_total", "vllm:prefix_cache_hits (vllm/0.9.2)"),
        (
            "0.12.0",
            "cached_prompt_tokens_total",
            "vllm:prefix_cache_hits + vllm:external_prefix_cache_hits (vllm/0.12.0)",
        ),
        ("0.28.0", "cached_prompt_tokens_total", "vllm:prompt_tokens_cached (vllm/0.27.0)"),
        ("0.28.0", "kv_usage_ratio", "vllm:kv_cache_usage_perc (vllm/0.27.0)"),
        ("0.32.0", "tier_cached_tokens_total", "vllm:prompt_tokens_cached_by_source (vllm/0.32.0)"),
    ],
)
def test_help_names_the_families_and_the_map(version, name, origin):
    bench = Bench()
    bench.says = version
    bench.poll(vllm_page(version))
    bench.poll(vllm_page(version, {"prompt_tokens": 5}))
    family = f"prefix_cache_engine_{name}"
    measure = next(one for one in ENGINE.values() if one.series_name == family)
    assert help_of(bench.recorder, family) == f"{measure.help} From {origin}."


def test_help_follows_an_upgrade_and_stays_while_nothing_can_be_read():
    bench = Bench()
    bench.says = "0.12.0"
    bench.poll(vllm_page("0.12.0"))
    bench.poll(vllm_page("0.12.0", {"prompt_tokens": 5}))
    bench.poll("refused")
    bench.says = "0.28.0"
    bench.poll(vllm_page("0.28.0", started=2000))
    family = "prefix_cache_engine_prompt_tokens_total"
    assert help_of(bench.recorder, family).endswith(" From vllm:prompt_tokens (vllm/0.27.0).")
    bench.says = "0.1.dev3"
    bench.poll("refused")
    bench.poll(vllm_page("0.28.0", started=3000))
    assert help_of(bench.recorder, family).endswith(" From vllm:prompt_tokens (vllm/0.27.0).")


def test_sources_of_several_releases_are_named_once_each_and_not_without_end():
    recorder = Recorder(Store(None), Limits(), hold_seconds=0)
    family, change = ENGINE["preemptions"], Change()
    change.add(family, {"source": "a"}, 1)
    recorder.apply(change)
    recorder.commit()
    assert help_of(recorder, family.series_name) == family.help
    for source, origin in (("a", "x (m1)"), ("b", "x (m1)"), ("c", "y (m2)")):
        recorder.set_origins(source, {family.name: origin})
    assert help_of(recorder, family.series_name) == f"{family.help} From x (m1), y (m2)."
    for number in range(3, 7):
        recorder.set_origins(f"s{number}", {family.name: f"z (m{number})"})
    assert help_of(recorder, family.series_name) == f"{family.help} From x (m1), y (m2), z (m3), and 3 more."
    for source in ("a", "b", "c", "s3", "s4", "s5", "s6"):
        recorder.set_origins(source, {})
    assert help_of(recorder, family.series_name) == family.help
