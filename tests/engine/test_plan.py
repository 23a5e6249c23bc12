"""Which dialect and name style a page is read in."""

from __future__ import annotations

import pytest

from prefix_cache_exporter.engine.apply import apply_page
from prefix_cache_exporter.engine.maps import load_maps
from prefix_cache_exporter.engine.plan import UnknownChoiceError
from support.vllm_pages import as_openmetrics, vllm_page

MAPS = load_maps()
SEEN = {"prompt_tokens": 100, "prefix_cache_queries": 100, "prefix_cache_hits": 48, "num_requests_running": 2}


def apply(version, body, **options):
    return apply_page(MAPS, version, body, **options).as_json()


@pytest.mark.parametrize(
    ("prefix", "style"),
    [("vllm:", "native"), ("vllm_", "stripped"), ("ray_vllm:", "ray_colon"), ("ray_vllm_", "ray")],
)
@pytest.mark.parametrize("version", ["0.9.2", "0.12.0", "0.32.0"])
def test_name_styles_are_the_same_page(version, prefix, style):
    answer = apply(version, vllm_page(version, SEEN, prefix=prefix))
    native = apply(version, vllm_page(version, SEEN))
    assert (answer["state"], answer["name_style"]) == ("verified", style)
    assert answer["totals"] == native["totals"]
    family = answer["engines"]["0"]["measures"]["lookup_tokens"]["family"]
    assert family == f"{prefix}prefix_cache_queries"


@pytest.mark.parametrize("style", ["native", "ray", "auto"])
def test_a_style_that_is_asked_for_is_taken(style):
    body = vllm_page("0.12.0", SEEN) + vllm_page("0.12.0", {"prompt_tokens": 7}, prefix="ray_vllm_", started=None)
    assert apply("0.12.0", body, style=style)["totals"]["prompt_tokens"] == (7 if style == "ray" else 100)


def test_a_page_of_another_style_than_asked_for_is_not_one_that_has_counted_nothing():
    answer = apply("0.33.0", vllm_page("0.33.0", {"prompt_tokens": 5}), style="ray")
    assert (answer["state"], answer["totals"]) == ("mismatch", {})
    assert "missing ray_vllm_prompt_tokens" in answer["reasons"]
    nothing_yet = apply("0.33.0", b"ray_serve_x 1\n", style="ray")
    assert (nothing_yet["state"], nothing_yet["withheld"]["prompt_tokens"]) == ("unverified", "no_series")


def test_rays_replicas_are_added_and_its_gauge_twins_left_out():
    def replica(worker, tokens, running):
        labels = f'model_name="m",engine="0",WorkerId="{worker}",ReplicaId="{worker}",Component="core_worker"'
        return (
            f"ray_vllm_prompt_tokens{{{labels}}} {tokens}\n",
            f"ray_vllm_prompt_tokens_total{{{labels}}} {tokens}\n",
            f"ray_vllm_num_requests_running{{{labels}}} {running}\n",
        )

    gauge, counter, running = zip(replica("a", 100, 2), replica("b", 50, 1), strict=True)
    text = "".join(
        [
            "# TYPE ray_vllm_prompt_tokens gauge\n",
            *gauge,
            "# TYPE ray_vllm_prompt_tokens_total counter\n",
            *counter,
            "# TYPE ray_vllm_num_requests_running gauge\n",
            *running,
        ]
    )
    answer = apply("0.12.0", text.encode())
    assert list(answer["engines"]) == ["0"]
    assert (answer["totals"]["prompt_tokens"], answer["totals"]["running_requests"]) == (150, 3)


@pytest.mark.parametrize(
    ("version", "dialect", "expected"),
    [
        ("0.7.3", "v0", "v0"),
        ("0.7.3", "v1", "v1"),
        ("0.8.5", "v0", "v0"),
        ("0.10.2", "v0", "v0"),
        ("0.10.2", "v1", "v1"),
    ],
)
def test_python_dialects_are_told_by_families_and_the_engine_label(version, dialect, expected):
    assert apply(version, vllm_page(version, dialect=dialect))["dialect"] == expected


def test_a_page_with_ranks_is_v1_even_without_its_counters():
    body = b'vllm:prompt_tokens_total{engine="0"} 5\n'
    assert apply("0.8.5", body)["dialect"] == "v1"
    assert apply("0.8.5", body.replace(b'engine="0"', b'model_name="m"'))["dialect"] == "v0"


def test_the_rust_front_end_is_told_by_its_format():
    openmetrics = as_openmetrics(vllm_page("0.28.0", SEEN), without=["vllm:cache_config_info", "process_"])
    assert apply("0.28.0", openmetrics)["dialect"] == "rust"
    assert apply("0.28.0", as_openmetrics(vllm_page("0.28.0", SEEN)))["dialect"] == "v1"
    assert apply("0.21.0", openmetrics, dialect="v1")["dialect"] == "v1"
    assert apply("0.8.3", as_openmetrics(vllm_page("0.8.3")))["dialect"] == "v1"


def test_a_dialect_that_is_asked_for_is_taken():
    assert apply("0.28.0", vllm_page("0.28.0"), dialect="rust")["dialect"] == "rust"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dialect": "v0"}, "dialect: got v0, expected one of auto, v1, rust"),
        ({"style": "upper"}, "name style: got upper, expected one of auto, native, ray_colon, ray, stripped"),
    ],
)
def test_what_a_version_does_not_have(options, message):
    with pytest.raises(UnknownChoiceError) as caught:
        apply("0.28.0", vllm_page("0.28.0"), **options)
    assert str(caught.value) == message
