"""The compiled way where there is one; without it everything comes to the same."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace
from unittest import mock

import msgspec
import pytest

from prefix_cache_exporter.usage.lane import choice, compiled
from prefix_cache_exporter.usage.lane.members import leaves, way_to
from prefix_cache_exporter.usage.lane.recent import Recent
from prefix_cache_exporter.usage.lane.sums import Sums, Times

needs_compiler = pytest.mark.skipif(not compiled.BUILT, reason="there was no compiler")


class Usage(msgspec.Struct, gc=False):
    input: int
    read: int
    output: int = 5


class Line(msgspec.Struct, gc=False, kw_only=True):
    model: str = "m"
    created: float = 100.0
    usage: Usage


def sums(**options):
    return Sums(None, "label", [].append, reported=True, **options)


def run_of(words=("model",), **place):
    m = SimpleNamespace(total_ignored=False, rule="inclusive", write_by_ttl={}, absent_read_is_zero=False)
    return choice.run_for(
        Line, {"input": "usage.input", "output": "usage.output", "read": "usage.read", **place}, words, m,
        time_is_number=True,
    )  # fmt: skip


@pytest.mark.parametrize("built", [True, False] if compiled.BUILT else [False])
def test_the_loop_asks_for_new_words_once_and_adds_the_rest(built):
    asked = []

    def opened(words, line, row):
        asked.append((words, row))
        known[words[0]] = found = sums(time=row[6])
        return found

    known, times, odd = {}, Times(), []
    lines = [Line(usage=Usage(10 + n, n), created=100.0 + n) for n in range(4)]
    lines.append(Line(usage=Usage(1, 2)))
    with mock.patch.object(compiled, "BUILT", built):
        run = run_of(time="created")
    for part in (lines[:2], lines[2:]):
        run(part, odd, known, opened, times)
    assert asked == [(("m",), (10, 0, None, 10, 5, {}, 100.0, None, None))]
    assert odd == [lines[4]]
    some = known["m"]
    assert (some.total, some.read, some.output, some.hits, some.others) == (46, 6, 20, 3, 1)
    assert times.span == (100.0, 103.0)


@needs_compiler
def test_more_words_than_the_compiled_way_takes_are_left_to_the_other():
    names = [f"w{n}" for n in range(17)]
    wide = msgspec.defstruct("Wide", [("a", int), ("b", int), ("c", int), *((name, str) for name in names)], gc=False)
    place = {"input": "a", "output": "b", "read": "c"}
    m = SimpleNamespace(total_ignored=False, rule="inclusive", write_by_ttl={}, absent_read_is_zero=False)
    run = choice.run_for(wide, place, names, m, time_is_number=False)
    some, odd = sums(), []
    run([wide(10, 1, 2, *names)], odd, {}, lambda *_: some, Times())
    assert (odd, some.total) == ([], 10)


@pytest.mark.parametrize("built", [True, False] if compiled.BUILT else [False])
def test_ids_are_kept_by_their_hashes(built):
    with mock.patch.object(compiled, "BUILT", built):
        memory = choice.memory_for(100)
        keys = choice.keys_for(Line, "model", hashed=True)
        assert choice.keys_for(Line, "model", hashed=False)([Line(usage=Usage(1, 0))]) == ["m"]
    assert isinstance(memory, Recent) is not built
    found = keys([Line(model=name, usage=Usage(1, 0)) for name in "ab"])
    assert list(found) == [hash("a"), hash("b")]
    assert memory.add_all(found)
    assert not memory.add(hash("b"))


def test_a_way_leads_over_the_structs_between():
    assert way_to(Line, "usage.input") == (Line.usage, Usage.input)
    assert [leaf.attribute for leaf in leaves(Line)][:4] == ["model", "created", "usage.input", "usage.read"]


def test_a_report_is_the_same_without_a_compiler(tmp_path):
    log = tmp_path / "usage.jsonl"
    with log.open("w") as file:
        for number in range(600):
            usage = {"prompt_tokens": 100 + number, "completion_tokens": 3}
            usage["prompt_tokens_details"] = {"cached_tokens": number % 5 * 20}
            record = {"id": f"c{number % 590}", "created": 1790000000 + number, "model": f"m{number % 3}"}
            file.write(json.dumps({**record, "usage": usage}) + "\n")
    told = [
        subprocess.run(
            [sys.executable, "-c", _WITHOUT.format(missing=missing), "report", str(log), "--format", "openai.chat"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for missing in (("_adding", "_recent"), ())
    ]
    assert told[0] == told[1]
    assert "590" in told[0]


_WITHOUT = """
import sys
for name in {missing}:
    sys.modules[f"prefix_cache_exporter.usage.lane.compiled.{{name}}"] = None
from prefix_cache_exporter.__main__ import main
from prefix_cache_exporter.usage.lane import compiled
assert not (compiled.BUILT and {missing})
sys.exit(main())
"""
