"""`maps list`, `maps show` and `maps apply`, as people and scripts call them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from prefix_cache_exporter.__main__ import main
from prefix_cache_exporter.engine.records import MEASURES
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
    assert lines[0] == "vllm/0.7.3: 0.7.3 verified (v0, v1)"
    assert "vllm/0.8.4: 0.8.4 0.8.5 0.8.5.post1 verified (v0, v1)" in lines
    assert "vllm/0.22.0: 0.22.0 0.22.1 verified (v1, rust unverified)" in lines
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
    assert "  lookup_tokens                   vllm:prefix_cache_queries, tokens" in lines
    assert "  prefill_computed_tokens         vllm:prompt_tokens_by_source source=local_compute, tokens" in lines
    assert "  finished_requests               vllm:request_success by finished_reason, requests" in lines
    assert "  block_size_tokens               vllm:cache_config_info label block_size, tokens" in lines
    gated = "  block_lifetime_seconds          vllm:kv_block_lifetime_seconds, seconds (only with --kv-cache-metrics)"
    assert gated in lines
    assert any(line.startswith("  caveat negative_local_hit: ") for line in lines)
    assert "  cached_tokens_by_tier           withheld: not_exposed" in lines
    external = "vllm:prompt_tokens_by_source source=external_kv_transfer, tokens (only for caveats)"
    assert f"  external_prompt_tokens          {external}" in lines


@pytest.mark.parametrize("version", ["0.7.3", "0.9.2", "0.12.0", "0.33.0"])
def test_show_lists_every_measure(capsys, version):
    out = run(capsys, "show", version)[1]
    for dialect in out.split("\n\n")[1:]:
        shown = [line.split()[0] for line in dialect.splitlines()[1:]]
        assert shown[: len(MEASURES)] == list(MEASURES)


def test_show_one_dialect(capsys):
    _, out, _ = run(capsys, "show", "0.8.5", "--dialect", "v0")
    assert "v0: V0 engine" in out
    assert "v1:" not in out
    assert "  cached_prompt_tokens            withheld: gauge_only" in out
    _, out, _ = run(capsys, "show", "0.8.5", "--dialect", "v1")
    assert "  lookup_tokens                   vllm:gpu_prefix_cache_queries, blocks x block_size_tokens" in out
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
    ("argv", "exit_", "message"),
    [
        (["show", "0.6.6"], 2, "error: command line: VERSION: got 0.6.6, expected a vllm version from 0.7.3 on"),
        (["show", "0.28.0", "--dialect", "v0"], 2, "error: command line: --dialect: got v0, expected one of v1, rust"),
        (
            ["list", "--maps", "/nowhere"],
            1,
            "error: /nowhere: folder: got no such file or directory, expected a folder",
        ),
        (["show", "0.9.2", "--maps", "/nowhere"], 1, "error: /nowhere: folder: got no such file or directory"),
        (
            ["apply", START, "--engine-version", "0.12.0", "--maps", "/nowhere"],
            1,
            "error: /nowhere: folder: got no such file",
        ),
        (["apply", "/nowhere.prom", "--engine-version", "0.12.0"], 1, "error: /nowhere.prom: file: got no such file"),
        (
            ["apply", START, "--engine-version", "0.12.0", "--previous", "/nowhere.prom"],
            1,
            "error: /nowhere.prom: file: got no such file or directory, expected a readable file",
        ),
        (
            ["apply", START, "--engine-version", "0.12.0", "--dialect", "v0"],
            2,
            "error: command line: --dialect: got v0, expected one of auto, v1",
        ),
        (
            ["apply", START, "--engine-version", "0.12.0", "--name-style", "x"],
            2,
            "error: command line: --name-style: got x, expected one of auto, native, ray_colon, ray, stripped",
        ),
        (
            ["apply", "-", "--engine-version", "0.12.0", "--previous", "-"],
            2,
            "error: command line: --previous: got standard input, expected another page than PAGE",
        ),
    ],
)
def test_what_cannot_be_done_is_one_line(capsys, argv, exit_, message):
    code, out, err = run(capsys, *argv)
    assert (code, out) == (exit_, "")
    assert err.startswith(message)
    assert err.count("\n") == 1


def test_a_page_that_is_none_is_one_line(capsys, tmp_path):
    cut = tmp_path / "cut.prom"
    cut.write_bytes(b"vllm:prompt_tokens_total 3")
    code, out, err = run(capsys, "apply", str(cut), "--engine-version", "0.12.0")
    said = f"error: {cut}: page: got the last line has no end (truncated), expected one whole page of metrics\n"
    assert (code, out, err) == (1, "", said)
    code, out, err = run(capsys, "apply", START, "--engine-version", "0.12.0", "--previous", str(cut))
    assert (code, out, err) == (1, "", said)


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
    assert lines[:3] == [
        "vllm 0.12.0: vllm/0.12.0, v1, native, verified",
        "counters count since the engine's start",
        "engine 0, model tiny",
    ]
    assert "  prompt_tokens                                948 tokens   vllm:prompt_tokens" in lines
    requests = "2 requests vllm:request_success (stop=0 length=2 abort=0)"
    assert f"  finished_requests                              {requests}" in lines
    [withheld] = [line for line in lines if line.startswith("withheld, not_exposed: ")]
    assert withheld.removeprefix("withheld, not_exposed: ").split(", ") == [
        "cached_tokens_by_tier",
        "prefill_computed_tokens",
        "reported_block_hit_ratio",
    ]
    assert any("hash_algorithm" in line and "sha256" in line for line in lines)
    assert any("awake=1 weights_offloaded=0 discard_all=0" in line for line in lines)
    assert any(line.split()[:5] == ["time_to_first_token_seconds", "2", "in", "0.119347", "seconds"] for line in lines)
    assert (
        "counters count since " + COLD
        in run(capsys, "apply", SAME, "--engine-version", "0.12.0", "--previous", COLD)[1]
    )


def test_apply_says_what_is_wrong(capsys, tmp_path):
    page = tmp_path / "page.prom"
    page.write_bytes(vllm_page("0.9.2", {"prompt_tokens": 793, "num_preemptions": 7, "prefix_cache_hits": 0.5}))
    _, out, _ = run(capsys, "apply", str(page), "--engine-version", "0.9.2")
    assert "  not_whole: 793 prompt tokens excluded" in out
    assert "caveat preemption_recount: a preempted request is looked up again" in out
    assert "anomaly not_whole: 2" in out
    page.write_bytes(vllm_page("0.12.0", model=""))
    _, out, _ = run(capsys, "apply", str(page), "--engine-version", "0.16.0")
    assert out.splitlines()[0] == "vllm 0.16.0: vllm/0.16.0, v1, native, mismatch"
    assert "  missing vllm:prompt_tokens_cached" in out
    assert "engine" not in out.replace("engine's", "")
    _, out, _ = run(capsys, "apply", str(page), "--engine-version", "")
    assert out.startswith("vllm unknown: unknown\n  unknown_version\nwithheld, unknown_version: prompt_tokens, ")


def test_apply_adds_engines_up_and_says_what_one_of_them_lacks(capsys, tmp_path):
    before, page = tmp_path / "before.prom", tmp_path / "page.prom"
    moved = {"prompt_tokens": 1000, "prefix_cache_queries": 1000, "prefix_cache_hits": 320, "num_preemptions@1": 1}
    before.write_bytes(vllm_page("0.10.2", {"prompt_tokens": 5000}, engines=[0, 1], started=1000))
    page.write_bytes(vllm_page("0.10.2", moved, engines=[0, 1], started=2000))
    argv = ["apply", str(page), "--engine-version", "0.10.2", "--previous", str(before)]
    first, rest = run(capsys, *argv)[1].split("engine 1, model m\n")
    second, together = rest.split("all engines\n")
    assert "  cached_prompt_tokens                         320 tokens   vllm:prefix_cache_hits" in first
    assert "withheld" not in first
    assert "  withheld, preemption_recount: cached_prompt_tokens" in second
    assert "  lookup_hit_tokens                            640 tokens" in together.splitlines()
    assert "  excluded_prompt_tokens                     1,000 tokens" in together.splitlines()
    assert "cached_prompt_tokens" not in together
    assert "restarts: 2" in together


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
    assert "vllm/0.34.0: 0.34.0 verified (v1, rust unverified)" in run(capsys, "list", "--maps", str(tmp_path))[1]


@pytest.mark.parametrize("argv", [[], ["apply"], ["apply", START], ["list", "--colour"]])
def test_a_wrong_command_line(capsys, argv):
    assert run(capsys, *argv)[0] == 2


def test_one_usage_map_is_checked_before_it_is_put_anywhere(capsys, tmp_path):
    own = tmp_path / "shop.yaml"
    own.write_text("format: shop.llm\nusage_from: openai.chat\nat: $.body\n")
    assert main(["check", "maps", str(own)]) == 0
    assert f"{own}: ok, a usage map; " in capsys.readouterr().out
    own.write_text("format: shop.llm\nusage_from: openai.caht\n")
    assert main(["check", "maps", str(own)]) == 1
    said = f"error: {own}: usage_from: got openai.caht, expected the name of a format; did you mean openai.chat"
    assert capsys.readouterr().err.startswith(said)
