from __future__ import annotations

import json
from pathlib import Path

from e2e_vllm.recording import Recording

PAGES = Path(__file__).parents[1] / "pages"


def test_a_recording_reads_like_those_at_hand(tmp_path):
    given = json.loads((PAGES / "0.32.0" / "steps.json").read_text("utf-8"))
    (tmp_path / "expected.json").write_text('{"0.1.0": {}}')
    recording = Recording("0.32.0", lambda block_size: given["shared_prefix"] | {"block_size": block_size}, tmp_path)
    recording.known("0.32.0", 128)
    recording.page("00_start", "a 1\n")
    for step in given["steps"]:
        recording.step(
            step["step"],
            step["note"],
            seconds=step["seconds"],
            requests=step["requests"],
            increases={"prompt_tokens": 3.0},
        )

    folder = recording.write()

    assert (folder / "steps.json").read_text("utf-8") == (PAGES / "0.32.0" / "steps.json").read_text("utf-8")
    assert (folder / "00_start.prom").read_text("utf-8") == "a 1\n"
    expected = json.loads((tmp_path / "expected.json").read_text("utf-8"))
    assert list(expected) == ["0.1.0", "0.32.0"]
    assert expected["0.32.0"]["01_cold"]["prompt_tokens"] == 3.0
    assert expected["0.32.0"]["01_cold"]["cached_prompt_tokens"] is None
    assert recording.write() == folder
