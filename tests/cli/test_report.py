# ruff: noqa: E501  # each message of the table stands on one line
from __future__ import annotations

import json
import subprocess
import sys

import pytest

from prefix_cache_exporter.cli import run

LINE = {
    "id": "1",
    "created": 1793500000,
    "model": "alias",
    "usage": {"prompt_tokens": 3000, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 2048}},
    "metadata": {"template": "t", "revision": "r1", "tenant": "acme", "group": "blue", "task": "qa"},
}
CONFIG = """
usage:
- name: gateway
  format: openai.chat
  paths: [unused.jsonl]
  models: {alias: gpt-5}
  fields: {template: $.metadata.template, template_revision: $.metadata.revision, tenant: $.metadata.tenant, task: $.metadata.task}
  namespaces: {buckets: 4, key_file: key}
- {name: engine, format: vllm.chat, paths: [unused.jsonl], block_size_tokens: 16}
prices: {files: [prices.yaml], currency: EUR}
inventory: {file: inventory.yaml}
"""
PRICES = """
provider: openai
source: https://example.org/contract
date: 2026-10-11
models:
- {id: gpt-5, match: [gpt-5], prices: [{input: 1, output: 8, read: 0.1x}]}
"""
INVENTORY = """
segments:
- {id: s, version: 1, owner: o, scope: all, sharing_group: g, expected_update_frequency: never, tokens: 2050}
templates: {t: {revisions: {r1: {shared_prefix: [s]}}}}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.jsonl").write_text(json.dumps(LINE) + "\n")
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "prices.yaml").write_text(PRICES)
    (tmp_path / "inventory.yaml").write_text(INVENTORY)
    (tmp_path / "key").write_text("secret")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_source_of_the_configuration_says_everything(capsys):
    by = "provider,model,template,template_revision,namespace,task,day"
    assert run(["report", "log.jsonl", "--config", "config.yaml", "--source", "gateway", "--by", by, "--json"]) == 0
    out = capsys.readouterr().out
    document = json.loads(out)
    (group,) = document["groups"]
    namespace = group["labels"].pop("namespace")
    assert group["labels"] == {
        "provider": "openai",
        "model": "gpt-5",
        "template": "t",
        "template_revision": "r1",
        "task": "qa",
        "day": "2026-11-01",
    }
    assert namespace.startswith("bucket-")
    assert "acme" not in out
    assert group["cost"]["EUR"]["input"] == pytest.approx((2048 * 0.1 + 952) / 1e6)
    assert group["ratios"]["usage_eligible_prefix"]["denominator"] == 2050


@pytest.mark.usefixtures("folder")
def test_arguments_come_before_the_configuration(capsys):
    arguments = (
        "report log.jsonl --config config.yaml --source engine --format vllm.chat --provider sglang --namespaces blue,red "
        "--field namespace=$.metadata.group --template t --template-revision r1 --block-size 128 --currency CHF "
        "--by provider,namespace --input-includes-cache true --json"
    )
    assert run(arguments.split()) == 0
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    assert group["labels"] == {"provider": "sglang", "namespace": "blue"}
    assert group["tokens"]["eligible_tokens"] == 2050 // 128 * 128


@pytest.mark.usefixtures("folder")
def test_the_only_source_needs_no_name(folder, capsys):
    (folder / "one.yaml").write_text("usage:\n- {name: x, format: openai.chat, paths: [x]}\n")
    assert run(["report", "log.jsonl", "--config", "one.yaml"]) == 0
    assert "1 request from 1 file of openai.chat" in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ("log.jsonl", 2, "command line: --format: got none, expected a format, or --config with a usage source"),
        ("log.jsonl --config empty.yaml", 2, "command line: --format: got none, expected a format, or --config with a usage source"),
        ("log.jsonl --config config.yaml", 2, "command line: --source: got none, expected one of gateway, engine, or --format"),
        ("log.jsonl --config config.yaml --source x", 2, "command line: --source: got x, expected one of gateway, engine"),
        ("log.jsonl --source x", 2, "command line: --source: got x, expected --config with a usage source of this name"),
        ("log.jsonl --format openai.chat --by hour", 2, "command line: --by: got hour, expected some of provider, model, template, template_revision, namespace, task, day"),
        ("log.jsonl --format openai.chat --field x", 2, "command line: --field: got x, expected NAME=PATH with a name of template, template_revision, namespace, tenant, task, eligible_tokens, attempt"),
        ("log.jsonl --format openai.chat --field task=$[", 2, "command line: --field: got $[, expected .key, [0] or ['key'] from character 2 on"),
        ("log.jsonl --format openai.chat --field task=$.a[*]", 2, "command line: --field: got $.a[*], expected a path to one value, without [*]"),
        (". --format openai.chat", 1, ".: file: got is a directory, expected a readable file"),
        ("log.jsonl --format openai.chart", 2, "command line: --format: got openai.chart, expected openai.chat or "),
        ("log.jsonl --config chart.yaml", 1, "chart.yaml: usage[0].format: got openai.chart, expected openai.chat or "),
        ("log.jsonl --format openai.org_usage", 2, "command line: --format: got openai.org_usage, expected a format of single requests; --reconcile reads aggregates"),
        ("gone.jsonl --format openai.chat", 1, "gone.jsonl: file: got no such file or directory, expected a readable file"),
        ("gone*.jsonl --format openai.chat", 1, "gone*.jsonl: file: got no such file or directory, expected a readable file"),
        ("log.jsonl --config gone.yaml", 1, "gone.yaml: file: got no such file or directory, expected a readable file"),
        ("log.jsonl --config no_key.yaml", 1, "gone.key: file: got no such file or directory, expected a readable file"),
        ("log.jsonl --format openai.chat --map gone.yaml", 1, "gone.yaml: file: got no such file or directory, expected a readable file"),
        ("log.jsonl --format openai.chat --inventory gone.yaml", 1, "gone.yaml: file: got no such file or directory, expected a readable file"),
        ("log.jsonl --format openai.chat --prices config.yaml", 1, "config.yaml: document: got "),
        ("log.jsonl --format openai.chat --reconcile log.jsonl", 1, "log.jsonl: file: got no usage buckets, expected aggregates like "),
        ("log.jsonl --format openai.chat --reconcile gone.csv", 1, "gone.csv: file: got no such file or directory, expected a readable file"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said_in_one_line(folder, capsys, arguments, status, message):
    (folder / "empty.yaml").write_text("")
    (folder / "chart.yaml").write_text("usage:\n- {name: x, format: openai.chart, paths: [x]}\n")
    (folder / "no_key.yaml").write_text(
        "usage:\n- {name: x, format: openai.chat, paths: [x], namespaces: {buckets: 4, key_file: gone.key}}\n"
    )
    assert run(["report", *arguments.split()]) == status
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines()[0].startswith(f"error: {message}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--block-size 0", "argument --block-size: invalid whole number above 0 value: '0'"),
        ("--groups=-1", "argument --groups: invalid whole number above 0 value: '-1'"),
        ("--tolerance nan", "argument --tolerance: invalid share from 0 to below 1 value: 'nan'"),
        ("--tolerance 5", "argument --tolerance: invalid share from 0 to below 1 value: '5'"),
    ],
)
def test_a_number_that_makes_no_sense_is_2(capsys, arguments, message):
    assert run(["report", "log.jsonl", "--format", "openai.chat", *arguments.split()]) == 2
    assert capsys.readouterr().err.endswith(f"prefix-cache-exporter report: error: {message}\n")


@pytest.mark.usefixtures("folder")
def test_a_reader_that_goes_away_is_no_error():
    command = f"{sys.executable} -m prefix_cache_exporter report log.jsonl --format openai.chat --json | head -c 1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"{", b"")
