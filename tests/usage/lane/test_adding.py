"""The compiled way takes the plainest lines and leaves the rest."""

from __future__ import annotations

from datetime import datetime
from math import inf
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefix_cache_exporter.usage import values
from prefix_cache_exporter.usage.lane import compiled
from prefix_cache_exporter.usage.lane.members import way_to
from prefix_cache_exporter.usage.lane.sums import Bounds, Sums

pytestmark = pytest.mark.skipif(not compiled.BUILT, reason="there was no compiler")


class Usage(msgspec.Struct, gc=False, kw_only=True):
    input: int
    output: int = 5
    read: int = 0
    write: int = 0
    total: int | None = None
    odd: int = 0
    short: int = 0
    long: int = 0


class Line(msgspec.Struct, gc=False, kw_only=True):
    id: str = "c1"
    model: str | None = "m"
    created: float | str = 100.0
    usage: Usage


def sums(**options):
    return Sums(None, "label", [].append, reported=True, **options)


def way(name):
    return way_to(Line, name)


def adder(**changes):
    ways = {"words": (way("model"),), "zeros": (), "input": way("usage.input"), "output": way("usage.output")}
    ways |= {"read": way("usage.read"), "write": None, "total": None, "uncached": None, "time": None}
    ways |= {"ttls": ("unknown",), "parts": (), "reasoning": None}
    return compiled.adding.Adder(**ways | {"exclusive": False} | changes)


def added(line, known, **changes):
    """Whether a line was added."""
    left, *_ = adder(**changes).add([line], known, (inf, -inf, -inf, inf))
    assert left in ([], [line])
    return not left


def numbers(some):
    return some.total, some.read, some.output, some.hits, some.others, some.unsplit


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


def test_exclusive_input_is_without_what_was_read():
    known = {"m": sums()}
    assert added(Line(usage=Usage(input=100, read=900)), known, exclusive=True)
    assert numbers(known["m"]) == (1000, 900, 5, 1, 0, 0)


@pytest.mark.parametrize(
    ("usage", "ways", "expected"),
    [
        ({"input": 10, "read": 11}, {}, False),
        ({"input": 10, "read": 4, "write": 6}, {"write": "usage.write"}, True),
        ({"input": 10, "read": 4, "write": 7}, {"write": "usage.write"}, False),
        ({"input": 10, "write": None}, {"write": "usage.write"}, False),
        ({"input": 10, "read": 4, "write": 1, "total": 5}, {"write": "usage.write", "uncached": "usage.total"}, True),
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


def test_written_tokens_are_split_by_time_to_live():
    known = {"m": sums()}
    lines = [
        Line(usage=Usage(input=1, read=2, write=30, short=10, long=20)),
        Line(usage=Usage(input=1, write=7, long=4)),
        Line(usage=Usage(input=1, read=5)),
        Line(usage=Usage(input=1, write=7, short=4, long=4)),  # more than there is
        Line(usage=Usage(input=1, write=0, short=1)),
    ]
    add = adder(
        write=way("usage.write"), ttls=("5m", "1h", "?"), parts=(way("usage.short"), way("usage.long")), exclusive=True
    ).add
    left, *_ = add(lines, known, (inf, -inf, -inf, inf))
    assert left == lines[3:]
    assert known["m"].writes == {"5m": 10, "1h": 24, "?": 3}
    assert numbers(known["m"]) == (47, 7, 15, 2, 1, 1)
    with pytest.raises(TypeError, match="a time to live for each of 2 parts and the rest"):
        adder(ttls=("5m", "1h"), parts=(way("usage.short"), way("usage.long")))


def test_reasoning_beside_the_output_is_output():
    known = {"m": sums()}
    ways = {"reasoning": way("usage.odd"), "total": way("usage.total")}
    assert added(Line(usage=Usage(input=10, odd=7, total=22)), known, **ways)
    assert not added(Line(usage=Usage(input=10, odd=7, total=15)), known, **ways)
    assert not added(Line(usage=Usage(input=10, odd=None, total=15)), known, **ways)
    assert numbers(known["m"]) == (10, 0, 12, 0, 1, 0)


def test_counts_that_must_be_zero():
    known = {"m": sums()}
    assert added(Line(usage=Usage(input=1)), known, zeros=(way("usage.odd"),))
    assert not added(Line(usage=Usage(input=1, odd=1)), known, zeros=(way("usage.odd"),))


def test_sums_bound_the_input_and_the_times_of_their_lines():
    known = {"m": sums(bounds=Bounds(most=50, low=90.0, high=110.0), time=100.0)}
    add = adder(time=way("created")).add
    lines = [Line(created=float(time), usage=Usage(input=1)) for time in (100, 120, 95, 89, 90, 110, 111, 97)]
    left, *times = add([*lines, Line(usage=Usage(input=51))], known, (98.0, 99.0, 95.0, 105.0))
    assert [line.created for line in left] == [120.0, 89.0, 111.0, 100.0]
    assert times == [95.0, 100.0, 90.0, 110.0]  # within low and high, and what only these sums allow
    assert known["m"].requests == 5


def moment(text):
    """What the compiled way takes a text for; None where it leaves the line."""
    add = adder(time=way("created")).add
    left, first, *_ = add([Line(created=text, usage=Usage(input=1))], {"m": sums(time=0.0)}, (inf, -inf, -inf, inf))
    return None if left else first


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-11-30T02:12:40Z", 1796004760.0),
        ("2026-11-30 02:12:40", 1796004760.0),
        ("2026-11-30T02:12:40.25+00:00", 1796004760.25),
        ("2026-11-30T02:12:40.123456789-05:30", 1796024560.123456),
        ("2026-11-30T02:12:40+14:00", 1795954360.0),
        ("1970-01-01T00:00:00Z", 0.0),
        ("2000-02-29T23:59:59.999999Z", 951868799.999999),
        ("2100-02-28T00:00:00Z", 4107456000.0),
        ("2199-12-31T23:59:59.999999Z", 7258118399.999999),
    ],
)
def test_times_as_most_logs_write_them_are_read(text, seconds):
    assert moment(text) == seconds == values.seconds_since_epoch(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026",
        "2026-11-30",
        "2026-11-30T02:12",
        "2026-11-30T02:12:40.Z",
        "2026-11-30T02:12:40,5Z",
        "1795918360",
        "2026-11-30T02:12:40z",
        "2026-11-30T02:12:40Z ",
        "2026-11-30T02:12:40+0100",
        "2026-11-30T02:12:40+01:00:30",
        "2026-11-30T02:12:60Z",
        "2026-11-30T24:00:00Z",
        "2026-02-29T00:00:00Z",
        "2100-02-29T00:00:00Z",
        "2026-13-01",
        "2026-04-31T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "1969-12-31T23:59:59Z",
        "2200-01-01T00:00:00Z",
        "٢٠٢٦-11-30T",
        "2026-11-30T02:12:40+24:00",
        "2026-11-30T02:12:40+01:60",
        "2026-11-30T-2:12:40Z",
        "2026-11-30T02:12:40Zé",
    ],
)
def test_other_times_are_left(text):
    assert moment(text) is None


@given(
    st.datetimes(datetime(1970, 1, 2), datetime(2199, 12, 30)),  # noqa: DTZ001  # zones are put to them
    st.sampled_from(["", "Z", "+00:00", "-23:59", "+05:45"]),
    st.text("0123456789.:-+TZ ", max_size=2),
    st.integers(0, 40),
)
def test_a_time_that_is_read_is_read_as_elsewhere(when, zone, noise, place):
    text = when.isoformat() + zone
    assert moment(text) == values.seconds_since_epoch(text)
    text = text[:place] + noise + text[place + len(noise) :]
    assert moment(text) in {None, values.seconds_since_epoch(text)}


@pytest.mark.parametrize("known", [{}, {"m": {}}, {"m": None}, {"m": Usage(input=1)}])
def test_lines_of_other_words_are_left(known):
    assert not added(Line(usage=Usage(input=1)), known)
    assert not added(Line(usage=Usage(input=1)), known, words=(way("model"), way("id")))


def test_lines_without_words_and_lines_of_other_structs():
    known = {(): sums()}
    assert added(Line(usage=Usage(input=1)), known, words=())
    assert not added(Usage(input=1), known, words=())
    assert not added(None, known, words=())
    assert not added(SimpleNamespace(usage=Usage(input=1)), known, words=())
    assert not added(Line(usage=None), known, words=())


def test_a_line_that_cannot_be_looked_up_is_an_error_and_no_crash():
    with pytest.raises(TypeError, match="unhashable"):
        added(Line(model=[], usage=Usage(input=1)), {"m": sums()})


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


def test_hashes_are_the_interpreters_own():
    lines = [Line(id=name, usage=Usage(input=1)) for name in ("a", "b", "", "ü" * 99)]
    assert list(memoryview(compiled.adding.hashes(lines, way("id"))).cast("q")) == [hash(line.id) for line in lines]
    with pytest.raises(TypeError, match="without the member"):
        compiled.adding.hashes([None], way("id"))
    with pytest.raises(TypeError, match="unhashable"):
        compiled.adding.hashes([Line(id=[], usage=Usage(input=1))], way("id"))
