"""The shipped configuration in a running exporter: the manifests' folders, without a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from prefix_cache_exporter.demo.recording import Replay, load_recording
from prefix_cache_exporter.web.address import Address
from prefix_cache_exporter.web.server import WebServer
from support.process import Exporter, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

MANIFESTS = Path(__file__).parents[2] / "deploy" / "manifests"
ENGINE, USAGE = "prefix_cache_engine_prompt_tokens_total", "prefix_cache_usage_prompt_tokens_total"


@pytest.fixture
def replay() -> Iterator[tuple[Replay, str]]:
    replay = Replay(load_recording("0.32.0"))
    server = WebServer(replay.app(), [Address("127.0.0.1", 0)])
    server.start()
    yield replay, f"http://{server.addresses[0]}"
    server.stop()


def mounted(folder: Path, server: str) -> Path:
    """What the pod's volumes hold, below a folder; `state` and `usage` are empty at first."""
    for name in ("config", "release", "pod", "state", "usage"):
        (folder / name).mkdir()
    text = (MANIFESTS / "config.yaml").read_text()
    for inside, outside in (
        ("/etc/prefix-cache-exporter/", f"{folder}/"),
        ("/var/lib/prefix-cache-exporter/", f"{folder}/state/"),
        ("/var/log/llm/", f"{folder}/usage/"),
        ("http://127.0.0.1:8000", server),
    ):
        assert inside in text
        text = text.replace(inside, outside)
    config = yaml.safe_load(text)
    config["state"] |= {"hold_seconds": 0, "commit_seconds": 0.05}
    config["engines"][0]["poll_seconds"] = 0.1
    config["usage"][0]["settle_seconds"] = 0
    (folder / "config" / "config.yaml").write_text(yaml.safe_dump(config))
    (folder / "release" / "release.yaml").write_text((MANIFESTS / "release.yaml").read_text())
    deployment = next(yaml.safe_load_all((MANIFESTS / "vllm.yaml").read_text()))
    annotations = deployment["spec"]["template"]["metadata"]["annotations"]
    lines = (f"{name}={json.dumps(value)}" for name, value in sorted(annotations.items()))
    (folder / "pod" / "annotations").write_text("\n".join(lines))  # as the Downward API writes them
    return folder / "config" / "config.yaml"


def test_an_engine_and_a_log_of_one_name_are_both_on_the_page(replay, tmp_path):
    server, address = replay
    config = mounted(tmp_path, address)
    with Exporter(f"--config.file={config}") as exporter:
        wait_until(lambda: 'prefix_cache_engine_up{source="vllm"} 1.0' in exporter.page())
        wait_until(lambda: 'prefix_cache_usage_log_readable{source="vllm"} 0.0' in exporter.page())  # no file yet
        assert server.wait_for_polls(2, 30)
        server.advance()
        usage = {"prompt_tokens": 474, "completion_tokens": 8, "prompt_tokens_details": {"cached_tokens": 0}}
        record = {"id": "a", "model": "tiny", "usage": usage, "template": "support", "template_revision": "r41"}
        others = {**record, "id": "b", "template": None, "template_revision": None, "namespace": "acme"}
        log = tmp_path / "usage" / "gateway.jsonl"
        log.write_text(f"{json.dumps(record)}\n{json.dumps(others)}\n")
        labels = {"source": "vllm", "model": "tiny", "template": "support"}
        wait_until(lambda: exporter.total(ENGINE, **labels, template_revision="r42") == 474)
        wait_until(lambda: exporter.total(USAGE, **labels, template_revision="r41") == 474)
        wait_until(lambda: exporter.total(USAGE, **labels, template_revision="r42") == 474)
        page = exporter.page()
        assert 'prefix_cache_usage_log_readable{source="vllm"} 1.0' in page
        assert 'prefix_cache_release_in_force{source="vllm",template="support",template_revision="r42"} 1.0' in page
        assert 'prefix_cache_release_file_valid{source="vllm"} 1.0' in page
        assert "acme" not in page  # nothing is a namespace that the configuration does not allow
