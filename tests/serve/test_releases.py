from __future__ import annotations

import pytest

from prefix_cache_exporter.config.model import ReleaseSpec
from prefix_cache_exporter.labels import Limits
from prefix_cache_exporter.recorder import Recorder
from prefix_cache_exporter.release import NOBODY_SAID
from prefix_cache_exporter.release_board import ReleaseBoard
from prefix_cache_exporter.serve.releases import SourceReleases
from prefix_cache_exporter.state import Store
from support.page import samples

R1, R2 = "{template: support, template_revision: r1}", "{template: support, template_revision: r2}"


@pytest.fixture
def recorder():
    recorder = Recorder(Store(None), Limits())
    yield recorder
    recorder.close()


def looks(recorder, spec):
    return SourceReleases("vllm", "engine", spec, ReleaseBoard(recorder))


def test_nobody_said(recorder):
    assert looks(recorder, ReleaseSpec()).look().in_force == NOBODY_SAID
    assert samples(recorder, "prefix_cache_release_in_force") == {}


def test_what_configuration_says(recorder):
    releases = looks(recorder, ReleaseSpec(template="support", template_revision="r1", cold_window_seconds=60)).look()
    assert releases.in_force.labels == {"template": "support", "template_revision": "r1"}
    assert samples(recorder, "prefix_cache_release_in_force") == {
        'source="vllm",template="support",template_revision="r1"': 1
    }
    assert samples(recorder, "prefix_cache_release_file_valid") == {}


def test_a_file_wins_once_it_could_be_read_and_its_last_good_content_stands(recorder, tmp_path):
    file = tmp_path / "release.yaml"
    source = looks(recorder, ReleaseSpec(file=file, template="support", template_revision="r0"))
    valid = 'source="vllm"'

    assert source.look().in_force.template_revision == "r0"
    assert samples(recorder, "prefix_cache_release_file_valid") == {valid: 0}
    file.write_text(R1)
    assert source.look().in_force.template_revision == "r1"
    assert samples(recorder, "prefix_cache_release_file_valid") == {valid: 1}
    file.write_text("{template: [")
    assert source.look().in_force.template_revision == "r1"
    assert samples(recorder, "prefix_cache_release_file_valid") == {valid: 0}
    file.write_text(R2)
    assert source.look().in_force.template_revision == "r2"
    assert samples(recorder, "prefix_cache_release_file_valid") == {valid: 1}
