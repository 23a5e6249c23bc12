"""`maps list`, `maps show` and `maps apply`, as people and scripts call them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from prefix_cache_exporter.__main__ import main
from support.vllm_pages import releases, vllm_page

PAGES = Path(__file__).parents[1] / "pages" / "0.12.0"
START, COLD, SAME = (str(PAGES / name) for name in ("00_start.prom", "01_cold.prom", "02_same.prom"))


def run(capsys, *argv):
    code = main(["maps", *argv])
    out, err = capsys.readouterr()
    return code, out, err


def test_list_says_which_map_a_release_has(capsys):
    code, out, err = run(capsys, "list")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "vllm/0.7.3: 0.7.3"
    assert "vllm/0.8.4: 0.8.4 0.8.5 0.8.5.post1" in lines
    listed = json.loads(run(capsys, "list", "--json")[1])
    assert set(releases()) <= set(listed["releases"])
    assert listed["releases"]["0.28.0"] == "0.27.0"
    assert len(listed["maps"]) == len(lines)


def test_show_prints_the_flat_map(capsys):
    code, out, _ = run(capsys, "show", "0.17.1")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "vllm 0.17.1: vllm/0.16.0, verified"
    assert "v1: V1 engine, Python front end" in lines
    assert "  lookup_tokens                  vllm:prefix_cache_queries, tokens" in lines
    assert "  prefill_computed_tokens        vllm:prompt_tokens_by_source source=local_compute, tokens" in lines
    assert "  finished_requests              vllm:request_success by finished_reason, requests" in lines
    assert "  block_size_tokens              vllm:cache_config_info label block_size, tokens" in lines
    gated = "  block_lifetime_seconds         vllm:kv_block_lifetime_seconds, seconds (only with --kv-cache-metrics)"
    assert gated in lines
    assert any(line.startswith("  caveat negative_local_hit: ") for line in lines)


def test_show_one_dialect(capsys):
    _, out, _ = run(capsys, "show", "0.8.5", "--dialect", "v0")
    assert "v0: V0 engine" in out
    assert "v1:" not in out
    assert "  cached_prompt_tokens           withheld: gauge_only" in out
    _, out, _ = run(capsys, "show", "0.8.5", "--dialect", "v1")
    assert "  lookup_tokens                  vllm:gpu_prefix_cache_queries, blocks x block_size_tokens" in out
    _, out, _ = run(capsys, "show", "0.34.0", "--dialect", "rust")
    assert out.startswith("vllm 0.34.0: vllm/0.33.0, unverified\n")
    assert "rust: Rust front end (facts not read from a release)" in out


def test_show_as_json(capsys):
    shown = json.loads(run(capsys, "show", "0.9.2", "--json")[1])
    assert (shown["engine_version"], shown["metric_map"], shown["verified"]) == ("0.9.2", "vllm/0.9.2", True)
    v1 = shown["dialects"]["v1"]
    assert v1["measures"]["lookup_tokens"]["families"] == ["vllm:prefix_cache_queries"]
    assert v1["caveats"]["preemption_recount"]["invalidates"] == ["cached_prompt_tokens"]
    assert v1["measures"]["lookup_tokens"]["source"].startswith("https://github.com/vllm-project/vllm/blob/v0.9.2/")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["show", "0.6.6"], "version: got 0.6.6, expected a vllm version from 0.7.3 on"),
        (["show", "0.28.0", "--dialect", "v0"], "dialect: got v0, expected one of v1, rust"),
        (["list", "--maps", "/nowhere"], "/nowhere: folder: got no such file or directory, expected a folder"),
        (["show", "0.9.2", "--maps", "/nowhere"], "/nowhere: folder: got no such file or directory, expected a folder"),
        (["apply", START, "--engine-version", "0.12.0", "--maps", "/nowhere"], "/nowhere: folder: got no such file"),
        (["apply", "/nowhere.prom", "--engine-version", "0.12.0"], "/nowhere.prom: got no such file or directory"),
        (
            ["apply", START, "--engine-version", "0.12.0", "--dialect", "v0"],
            "dialect: got v0, expected one of auto, v1",
        ),
    ],
)
def test_what_cannot_be_done_is_one_line(capsys, argv, message):
    code, out, err = run(capsys, *argv)
    assert (code, out) == (1, "")
    assert err.startswith(message)
    assert err.count("\n") == 1


def test_a_page_that_is_none_is_one_line(capsys, tmp_path):
    cut = tmp_path / "cut.prom"
    cut.write_bytes(b"vllm:prompt_tokens_total 3")
    code, out, err = run(capsys, "apply", str(cut), "--engine-version", "0.12.0")
    assert (code, out, err) == (1, "", f"{cut}: truncated: the last line has no end\n")


def test_apply_answers_as_documented(capsys):
    code, out, _ = run(capsys, "apply", SAME, "--engine-version", "0.12.0", "--previous", COLD, "--json")
    answer = json.loads(out)
    assert code == 0
    assert (answer["engine_version"], answer["metric_map"], answer["state"]) == ("0.12.0", "vllm/0.12.0", "verified")
    engine = answer["engines"]["0"]
    assert engine["model"] == "tiny"
    assert engine["measures"]["prompt_tokens"] == {"value": 474, "unit": "tokens", "family": "vllm:prompt_tokens"}
    assert answer["totals"]["cached_prompt_tokens"] == 384
    assert answer["withheld"]["cached_tokens_by_tier"] == "not_exposed"
    assert answer["caveats"] == []


def test_apply_without_an_earlier_page_counts_since_the_start(capsys):
    _, out, _ = run(capsys, "apply", SAME, "--engine-version", "0.12.0", "--json")
    assert json.loads(out)["totals"]["prompt_tokens"] == 948


def test_apply_for_people(capsys):
    code, out, _ = run(capsys, "apply", SAME, "--engine-version", "0.12.0")
    lines = out.splitlines()
    assert code == 0
    assert lines[:2] == ["vllm 0.12.0: vllm/0.12.0, v1, verified", "engine 0, model tiny"]
    assert "  prompt_tokens                               948 tokens  vllm:prompt_tokens" in lines
    assert "withheld cached_tokens_by_tier: not_exposed" in lines
    assert any("hash_algorithm" in line and "sha256" in line for line in lines)
    assert any("awake=1 weights_offloaded=0 discard_all=0" in line for line in lines)


def test_apply_says_what_is_wrong(capsys, tmp_path):
    page = tmp_path / "page.prom"
    page.write_bytes(vllm_page("0.9.2", {"prompt_tokens": 793, "num_preemptions": 7, "prefix_cache_hits": 0.5}))
    _, out, _ = run(capsys, "apply", str(page), "--engine-version", "0.9.2")
    assert "  not_whole: 793 prompt tokens excluded" in out
    assert "caveat preemption_recount" in out
    assert "anomaly not_whole: 2" in out
    page.write_bytes(vllm_page("0.12.0", model=""))
    _, out, _ = run(capsys, "apply", str(page), "--engine-version", "0.16.0")
    assert out.splitlines()[0] == "vllm 0.16.0: vllm/0.16.0, v1, mismatch"
    assert "  missing vllm:prompt_tokens_cached" in out


def test_apply_reads_standard_input(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'vllm:prompt_tokens_total{engine="0"} 3\n')))
    _, out, _ = run(capsys, "apply", "-", "--engine-version", "0.12.0")
    assert "engine 0, model unnamed" in out


def test_apply_with_a_content_type_and_a_style(capsys, tmp_path):
    page = tmp_path / "page.om"
    page.write_bytes(b"# TYPE vllm_prompt_tokens counter\nvllm_prompt_tokens_total 3\n# EOF\n")
    argv = ["apply", str(page), "--engine-version", "0.28.0", "--name-style", "stripped", "--json"]
    _, out, _ = run(capsys, *argv, "--content-type", "application/openmetrics-text")
    answer = json.loads(out)
    assert (answer["name_style"], answer["dialect"], answer["totals"]["prompt_tokens"]) == ("stripped", "rust", 3)


def test_own_maps_are_used(capsys, tmp_path):
    (tmp_path / "0.34.0.yaml").write_text("version: 0.34.0\nverified: [0.34.0]\n")
    assert "vllm/0.34.0: 0.34.0" in run(capsys, "list", "--maps", str(tmp_path))[1]


@pytest.mark.parametrize("argv", [[], ["apply"], ["apply", START], ["list", "--colour"]])
def test_a_wrong_command_line(capsys, argv):
    assert run(capsys, *argv)[0] == 2
