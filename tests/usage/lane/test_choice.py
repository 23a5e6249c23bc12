"""The compiled way takes the plainest lines and leaves the rest; the Python way comes to the same."""

from __future__ import annotations

import json
import subprocess
import sys
from math import inf
from types import SimpleNamespace
from unittest import mock

import msgspec
import pytest

from prefix_cache_exporter.usage.lane import choice, compiled
from prefix_cache_exporter.usage.lane.members import leaves, way_to
from prefix_cache_exporter.usage.lane.sums import EVERYTHING, Bounds, Sums, Times

needs_compiler = pytest.mark.skipif(not compiled.BUILT, reason="there was no compiler")


class Usage(msgspec.Struct, gc=False, kw_only=True):
    input: int
    output: int = 5
    read: int = 0
    write: int = 0
    total: int | None = None
    odd: int = 0


class Line(msgspec.Struct, gc=False, kw_only=True):
    id: str = "c1"
    model: str | None = "m"
    created: float = 100.0
    usage: Usage


def sums(**options):
    return Sums(None, "label", [].append, reported=True, **options)


def way(name):
    return way_to(Line, name)


def adder(**changes):
    ways = {"words": (way("model"),), "zeros": (), "input": way("usage.input"), "output": way("usage.output")}
    ways |= {"read": way("usage.read"), "write": None, "total": None, "uncached": None, "time": None}
    return compiled.adding.Adder(**ways | {"exclusive": False} | changes)


def added(line, known, **changes):
    """Whether a line was added."""
    left, *_ = adder(**changes).add([line], known, (inf, -inf, -inf, inf))
    assert left in ([], [line])
    return not left


def numbers(some):
    return some.total, some.read, some.output, some.hits, some.others, some.unsplit


@needs_compiler
def test_lines_of_known_words_are_added():
    known = {"m": sums(), None: sums()}
    lines = [
        Line(usage=Usage(input=100, read=60)),
        Line(usage=Usage(input=40), model=None),
        Line(usage=Usage(input=7), model="new"),
        Line(usage=Usage(input=30, output=0)),
    ]
    left, *times = adder().add(lines, known, (inf, -inf, -inf, inf))
    assert left == [lines[2]]
    assert times == [inf, -inf, inf, -inf]
    assert numbers(known["m"]) == (130, 60, 5, 1, 1, 0)
    assert numbers(known[None]) == (40, 0, 5, 0, 1, 0)


@needs_compiler
def test_exclusive_input_is_without_what_was_read():
    known = {"m": sums()}
    assert added(Line(usage=Usage(input=100, read=900)), known, exclusive=True)
    assert numbers(known["m"]) == (1000, 900, 5, 1, 0, 0)


@needs_compiler
@pytest.mark.parametrize(
    ("usage", "ways", "expected"),
    [
        ({"input": 10, "read": 11}, {}, False),
        ({"input": 10, "write": 1}, {"write": "usage.write"}, False),
        ({"input": 10, "write": 0}, {"write": "usage.write"}, True),
        ({"input": 10, "total": 15}, {"total": "usage.total"}, True),
        ({"input": 10, "total": 16}, {"total": "usage.total"}, False),
        ({"input": 10, "total": None}, {"total": "usage.total"}, False),
        ({"input": 10, "read": 4, "total": 6}, {"uncached": "usage.total"}, True),
        ({"input": 10, "read": 4, "total": 10}, {"uncached": "usage.total"}, False),
        ({"input": -1}, {}, False),
        ({"input": True}, {}, False),
        ({"input": 10.0}, {}, False),
        ({"input": 2**70}, {}, False),
        ({"input": 2**30 - 1}, {}, True),
        ({"input": 2**30}, {}, False),
        ({"input": 10, "output": None}, {}, False),
    ],
)
def test_numbers_that_do_not_agree_are_left(usage, ways, expected):
    known = {"m": sums()}
    assert added(Line(usage=Usage(**usage)), known, **{role: way(name) for role, name in ways.items()}) is expected
    assert known["m"].requests == expected


@needs_compiler
def test_counts_that_must_be_zero():
    known = {"m": sums()}
    assert added(Line(usage=Usage(input=1)), known, zeros=(way("usage.odd"),))
    assert not added(Line(usage=Usage(input=1, odd=1)), known, zeros=(way("usage.odd"),))


@needs_compiler
def test_sums_bound_the_input_and_the_times_of_their_lines():
    known = {"m": sums(bounds=Bounds(most=50, low=90.0, high=110.0), time=100.0)}
    add = adder(time=way("created")).add
    lines = [Line(created=float(time), usage=Usage(input=1)) for time in (100, 120, 95, 89, 90, 110, 111, 97)]
    left, *times = add([*lines, Line(usage=Usage(input=51))], known, (98.0, 99.0, 95.0, 105.0))
    assert [line.created for line in left] == [120.0, 89.0, 111.0, 100.0]
    assert times == [95.0, 100.0, 90.0, 110.0]  # within low and high, and what only these sums allow
    assert known["m"].requests == 5


@needs_compiler
@pytest.mark.parametrize("known", [{}, {"m": {}}, {"m": None}, {"m": Usage(input=1)}])
def test_lines_of_other_words_are_left(known):
    assert not added(Line(usage=Usage(input=1)), known)
    assert not added(Line(usage=Usage(input=1)), known, words=(way("model"), way("id")))


@needs_compiler
def test_lines_without_words_and_lines_of_other_structs():
    known = {(): sums()}
    assert added(Line(usage=Usage(input=1)), known, words=())
    assert not added(Usage(input=1), known, words=())
    assert not added(None, known, words=())
    assert not added(SimpleNamespace(usage=Usage(input=1)), known, words=())
    assert not added(Line(usage=None), known, words=())


@needs_compiler
def test_a_line_that_cannot_be_looked_up_is_an_error_and_no_crash():
    with pytest.raises(TypeError, match="unhashable"):
        added(Line(model=[], usage=Usage(input=1)), {"m": sums()})


@needs_compiler
@pytest.mark.parametrize(
    "wrong",
    [(), (1,), ("id",), (SimpleNamespace.__init__,), way("model") * 9, [*way("model")], (type(sums()).hits,)],
)
def test_a_way_that_cannot_be_gone_is_refused(wrong):
    with pytest.raises(TypeError, match="expected a"):
        adder(input=wrong)
    with pytest.raises(TypeError, match="expected a"):
        adder(words=(wrong,))
    with pytest.raises(TypeError, match="expected a"):
        compiled.adding.hashes([], wrong)


@needs_compiler
def test_hashes_are_the_interpreters_own():
    lines = [Line(id=name, usage=Usage(input=1)) for name in ("a", "b", "", "ü" * 99)]
    assert list(memoryview(compiled.adding.hashes(lines, way("id"))).cast("q")) == [hash(line.id) for line in lines]
    with pytest.raises(TypeError, match="without the member"):
        compiled.adding.hashes([None], way("id"))
    with pytest.raises(TypeError, match="unhashable"):
        compiled.adding.hashes([Line(id=[], usage=Usage(input=1))], way("id"))


def run_of(words=("model",), **place):
    m = SimpleNamespace(total_ignored=False, rule="inclusive")
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
    lines = [Line(usage=Usage(input=10 + n, read=n), created=100.0 + n) for n in range(4)]
    lines.append(Line(usage=Usage(input=1, read=2)))
    with mock.patch.object(compiled, "BUILT", built):
        run = run_of(time="created")
    for part in (lines[:2], lines[2:]):
        run(part, odd, known, opened, times)
    assert asked == [(("m",), (10, 0, None, 10, 5, {}, 100.0, None, None))]
    assert odd == [lines[4]]
    assert numbers(known["m"]) == (46, 6, 20, 3, 1, 0)
    assert times.span == (100.0, 103.0)


@needs_compiler
def test_more_words_than_the_compiled_way_takes_are_left_to_the_other():
    names = [f"w{n}" for n in range(17)]
    wide = msgspec.defstruct("Wide", [("a", int), ("b", int), ("c", int), *((name, str) for name in names)], gc=False)
    place = {"input": "a", "output": "b", "read": "c"}
    m = SimpleNamespace(total_ignored=False, rule="inclusive")
    run = choice.run_for(wide, place, names, m, time_is_number=False)
    some, odd = sums(bounds=EVERYTHING), []
    run([wide(10, 1, 2, *names)], odd, {}, lambda *_: some, Times())
    assert (odd, some.total) == ([], 10)


def test_a_way_leads_over_the_structs_between():
    assert way_to(Line, "usage.input") == (Line.usage, Usage.input)
    assert [leaf.attribute for leaf in leaves(Line)][:4] == ["id", "model", "created", "usage.input"]


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
