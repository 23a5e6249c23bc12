from __future__ import annotations

import gzip
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefix_cache_exporter.usage import arrays, contents, cri, positions
from prefix_cache_exporter.usage.contents import CHUNK, Gzip, Plain, UnreadableError, open_content
from prefix_cache_exporter.usage.log import Log, ReplacedError
from prefix_cache_exporter.usage.positions import Position

LIMIT = 4 << 20
CRI = b"2026-03-02T12:00:01.000000000Z stdout %s"


def read(tmp_path, data: bytes, limit: int = LIMIT, position: Position | None = None, *, packed: bool = False):
    """Everything a log gives, its losses, and the log."""
    path = tmp_path / "log"
    path.write_bytes(gzip.compress(data, 1) if packed else data)
    log = Log(open_content(os.open(path, os.O_RDONLY)), position or Position(0, 0), limit)
    lines: list[bytes] = []
    lost: dict[str, int] = {}
    while piece := log.advance():
        lines += piece.lines
        for reason, count in piece.lost.items():
            lost[reason] = lost.get(reason, 0) + count
    return lines, lost, log


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("data", "lines", "rest"),
    [
        (b'{"a":1}\n{"b":2}\n', [b'{"a":1}', b'{"b":2}'], b""),
        (b'{"a":1}\n{"b"', [b'{"a":1}'], b'{"b"'),
        (b'\xef\xbb\xbf{"a":1}\r\n\r\n \n{"b":2}\n', [b'{"a":1}\r', b'{"b":2}'], b""),
        (b"hello\nworld\n", [b"hello", b"world"], b""),
        (b"", [], b""),
        (b'\0\0{"a":1}\n{"b":\0\0{"c":3}\n', [b'{"a":1}', b'{"b":', b'{"c":3}'], b""),
        (b"[INFO] started\n[1] two\n", [b"[INFO] started", b"[1] two"], b""),
        # Arrays and pretty-printed objects, over any number of lines.
        (b'[{"a":1},\n {"b":"]}\\""},\n [2]]\n', [b'{"a":1}', b'{"b":"]}\\""}', b"[2]"], b""),
        (b'[{}, 3, "x", null]\n', [b"{}", b"3", b'"x"', b"null"], b""),
        (b'[\n  {"a": {"b": [1, 2]}}\n', [b'{"a": {"b": [1, 2]}}'], b""),
        (b'{\n "a": 1\n}\n{\n "b": 2\n}\n', [b'{\n "a": 1\n}', b'{\n "b": 2\n}'], b""),
        (b'[{"a":1}]\n[{"b":2}]\n', [b'{"a":1}', b'{"b":2}'], b""),
        (b'[{"a":1}, {"b":', [b'{"a":1}'], b'{"b":'),
        (b'[{"a":1}, {"b":"half', [b'{"a":1}'], b'{"b":"half'),
        (b"[]", [], b""),
    ],
)  # fmt: skip
def test_lines_and_values(tmp_path, data, lines, rest, packed):
    found, lost, log = read(tmp_path, data, packed=packed)
    assert found == lines
    assert not lost
    assert log.finish().lines == ([rest] if rest else [])


def test_positions_go_on_wherever_reading_stopped(tmp_path):
    data = b'[{"a":1}, {"b":2}, {"c":"' + b"x" * 3_000_000 + b'"}, {"d":4}]'
    path = tmp_path / "log"
    path.write_bytes(data)
    position, lines = Position(0, 0), []
    for _ in range(10):
        log = Log(open_content(os.open(path, os.O_RDONLY)), position, LIMIT)
        if piece := log.advance():
            lines += piece.lines
        position = positions.load(positions.dump(log.position))
        log.content.close()
    assert [len(line) for line in lines] == [7, 7, 3_000_008, 7]


def test_an_array_that_is_written_anew_with_more_at_its_end_goes_on(tmp_path):
    lines, _, log = read(tmp_path, b'[{"a":1},\n{"b":2}\n]\n')
    (tmp_path / "log").write_bytes(b'[{"a":1},\n{"b":2},\n{"c":3}\n]\n')
    assert log.advance().lines == [b'{"c":3}']
    assert lines == [b'{"a":1}', b'{"b":2}']


@pytest.mark.parametrize("size", [10, CHUNK - 3, CHUNK, 3 * CHUNK])
@pytest.mark.parametrize("packed", [False, True])
def test_lines_longer_than_a_read(tmp_path, size, packed):
    data = b'{"a":"' + b"x" * size + b'"}\n{"b":2}\n'
    lines, lost, _ = read(tmp_path, data, packed=packed)
    assert [len(line) for line in lines] == [size + 8, 7]
    assert not lost


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("front", "back"),
    [
        (b'{"a":1}\n{"big":"', b'"}\n{"c":3}\n'),
        (b'[{"a":1}, {"big":"\\\\\\"{', b'\\"}"}, {"c":3}]'),
        (b'{"a":1}\n{"big":"', b'\0{"c":3}\n'),
    ],
)
@pytest.mark.parametrize("size", [200, 5 * CHUNK + 17])
def test_what_is_too_long_is_stepped_over_and_counted_once(tmp_path, front, back, size, packed):
    lines, lost, _ = read(tmp_path, front + b"x" * size + back, limit=100, packed=packed)
    assert lines == [b'{"a":1}', b'{"c":3}']
    assert lost == {"too_long": 1}


@pytest.mark.parametrize("limit", [100, CHUNK - 1, CHUNK, CHUNK + 1, 300_000])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\0\0", b""])
def test_a_line_may_be_as_long_as_the_limit_whatever_ends_it(tmp_path, limit, packed, end):
    longest, longer = (b'{"a":"' + b"x" * (size - 8) + b'"}' for size in (limit, limit + 1))
    for line, fits in ((longest, True), (longer, False)):
        lines, lost, log = read(tmp_path, line + end + (b'{"b":2}\n' if end else b""), limit=limit, packed=packed)
        last = log.last() if not end else None
        lines += log.finish().lines if last is None else last.lines
        assert [text.rstrip() for text in lines] == ([line] if fits else []) + ([b'{"b":2}'] if end else [])
        assert lost == ({} if fits or not end else {"too_long": 1})


@pytest.mark.parametrize("limit", [100, CHUNK, 300_000])
def test_what_stands_before_the_text_of_a_container_line_is_not_its_length(tmp_path, limit):
    for size, lost in ((limit, {}), (limit + 1, {"too_long": 1})):
        text = b'{"a":"' + b"x" * (size - 8) + b'"}'
        lines, found, log = read(tmp_path, CRI % b"F " + text + b"\n" + CRI % b'F {"b":2}\n', limit=limit)
        assert ([len(line) for line in lines], found) == (([] if lost else [size]) + [7], lost)
        _, _, log = read(tmp_path, CRI % b'F {"b":2}\n' + CRI % b"F " + text, limit=limit)
        final = log.finish()
        assert ([len(line) for line in final.lines], final.lost) == ([] if lost else [size], lost)


@pytest.mark.parametrize("line", [b"", b'{"b":2}'])
def test_nuls_at_the_end_of_a_log_are_no_long_line(tmp_path, line):
    _, _, log = read(tmp_path, b'{"a":1}\n' + line + b"\0" * 5000, limit=100)
    final = log.finish()
    assert (final.lines, final.lost) == ([line] if line else [], {})


def test_stepping_over_goes_on_when_the_rest_comes(tmp_path):
    lines, lost, log = read(tmp_path, b'{"a":1}\n' + b"x" * (3 * CHUNK), limit=1000)
    assert (lines, lost) == ([b'{"a":1}'], {})
    with (tmp_path / "log").open("ab") as file:
        file.write(b"x" * CHUNK)
        file.flush()
        assert log.advance() is None
        file.write(b'x\n{"b":2}\n')
    assert log.advance().lost == {"too_long": 1}
    assert log.advance().lines == [b'{"b":2}']


def test_a_last_line_over_the_limit_is_counted_at_the_end(tmp_path):
    _, _, log = read(tmp_path, b'{"a":1}\n' + b"x" * 200, limit=100)
    assert log.last() is None
    assert log.finish().lost == {"too_long": 1}


def test_nuls_at_the_end_may_still_be_written_over(tmp_path):
    lines, _, log = read(tmp_path, b'{"a":1}\n{"b":' + b"\0" * 100)
    assert lines == [b'{"a":1}']
    with (tmp_path / "log").open("r+b") as file:
        file.seek(13)
        file.write(b"2}\n")
        file.truncate()
    assert log.advance().lines == [b'{"b":2}']


def test_a_hole_of_100_mb_ends_a_line_once_something_follows(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b'{"a":1}\n{"b":')
    os.truncate(path, 100 << 20)
    log = Log(open_content(os.open(path, os.O_RDONLY)), Position(0, 0), LIMIT)
    assert log.advance().lines == [b'{"a":1}']
    assert log.advance() is None
    with path.open("ab") as file:
        file.write(b'{"c":3}\n')
    assert log.advance().lines == [b'{"b":']
    assert log.advance().lines == [b'{"c":3}']


@pytest.mark.parametrize("change", ["truncated", "rewritten", "same size"])
def test_a_replaced_file_is_noticed_before_it_is_believed(tmp_path, change):
    _, _, log = read(tmp_path, b'{"a":1}\n{"b":2}\n')
    new = {"truncated": b'{"a":1}\n', "rewritten": b'{"z":1}\n{"y":2}\n{"x":3}\n', "same size": b'{"z":1}\n{"y":2}\n'}
    (tmp_path / "log").write_bytes(new[change])
    os.utime(tmp_path / "log", ns=(1, 1))
    with pytest.raises(ReplacedError):
        log.advance()


def test_container_lines(tmp_path):
    data = CRI % b'P {"a":' + b"\n" + CRI.replace(b"stdout", b"stderr") % b"F   oh" + b"\n" + CRI % b"F:tag 1}" + b"\n"
    lines, lost, log = read(tmp_path, data + CRI % b"F \nnot cri\n")
    assert lines == [b"  oh", b'{"a":1}', b"not cri"]
    assert not lost
    assert log.position.mode == positions.CRI
    assert log.finish().lost == {}


def test_parts_over_the_limit_are_one_lost_line(tmp_path):
    data = b"".join(CRI % b"P " + b"x" * 60 + b"\n" for _ in range(3)) + CRI % b"F x\n" + CRI % b'F {"a":1}\n'
    lines, lost, _ = read(tmp_path, data, limit=100)
    assert (lines, lost) == ([b'{"a":1}'], {"too_long": 1})
    assert cri.Joiner(10).push(CRI % b"F " + b"x" * 11, 0) == (None, "too_long")


def test_open_parts_are_read_again_after_a_kill(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"")
    pieces = [
        CRI % b'P {"a":' + b"\n",
        CRI.replace(b"stdout", b"stderr") % b"F oh\n",
        CRI % b"P 1," + b"\n" + b"\0\0\n",
        CRI.replace(b"stdout", b"stderr") % b"F no\n",
        CRI % b'F "b":2}\n' + CRI % b'F {"c":3}',
    ]
    position, lines = Position(0, 0), []
    for piece in pieces:
        with path.open("ab") as file:
            file.write(piece)
        log = Log(open_content(os.open(path, os.O_RDONLY)), position, LIMIT)
        while found := log.advance():
            lines += found.lines
        position = log.position
        log.content.close()
    assert lines == [b"oh", b"no", b'{"a":1,"b":2}']
    log = Log(open_content(os.open(path, os.O_RDONLY)), position, LIMIT)
    assert log.last().lines == [b'{"c":3}']
    with path.open("ab") as file:
        file.write(b"\n" + CRI % b"P {" + b"\n" + CRI % b"P half")
    assert log.advance().lines == []
    assert log.waiting
    assert log.last() is None
    final = log.finish()
    assert (final.lines, final.lost) == ([], {"orphan_partial": 1})


def test_a_long_gap_between_parts_is_read_again(tmp_path):
    gap = b"".join(CRI.replace(b"stdout", b"stderr") % b"F " + b"x" * 900 + b"\n" for _ in range(3000))
    data = CRI % b'P {"a":' + b"\n" + gap
    lines, _, log = read(tmp_path, data)
    assert len(lines) == 3000
    with (tmp_path / "log").open("ab") as file:
        file.write(CRI % b"F 1}\n")
    again = Log(open_content(os.open(tmp_path / "log", os.O_RDONLY)), log.position, LIMIT)
    assert again.advance().lines == [b'{"a":1}']


def test_a_last_line_is_taken_only_if_nothing_can_be_added(tmp_path):
    for data, taken in ((b'{"a":1}', True), (b'{"a":1', False), (b"12", False), (b"[1]", False), (b" ", False)):
        _, _, log = read(tmp_path, data)
        assert (log.last() is not None) == taken, data
        log.content.close()
    _, _, log = read(tmp_path, b'{"a":1}\n{"b":2}')
    (tmp_path / "log").write_bytes(b'{"z":1}\n{"b":2}')
    assert log.last() is None


def test_gzip_of_several_members_read_backwards_too(tmp_path):
    data = os.urandom(3 * CHUNK)
    path = tmp_path / "log"
    path.write_bytes(b"".join(gzip.compress(part) for part in (data[:10], data[10:CHUNK], data[CHUNK:])))
    content = open_content(os.open(path, os.O_RDONLY))
    assert isinstance(content, Gzip)
    assert content.read(2 * CHUNK, 100) == data[2 * CHUNK :][:100]
    assert content.read(10, 1000) == data[10:1010]
    assert content.read(0, 1 << 30) == data
    assert content.complete
    assert content.extent(1 << 40) == len(data)
    assert content.extent(17) == 17
    assert content.unread(len(data)) == 0
    assert content.first_data(1 << 40) is None
    assert content.reopened() is content
    content.close()


def test_a_damaged_archive_fails_each_time(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(gzip.compress(b"x" * 100)[:-8] + b"12345678")
    content = open_content(os.open(path, os.O_RDONLY))
    for _ in range(2):
        with pytest.raises(UnreadableError, match="got a damaged archive, expected gzip that can be unpacked"):
            content.read(0, 10)
    content.close()


def test_a_plain_file_without_holes_known(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"\0" * (CHUNK + 5) + b"x")
    content = open_content(os.open(path, os.O_RDONLY))
    assert isinstance(content, Plain)
    assert content.first_data(0) == CHUNK + 5
    assert content.first_data(CHUNK + 6) is None
    assert content.extent(7) == 7


def test_abstract_contents_say_so():
    forward = contents._Forward()
    for ask in (forward._more, forward.stamp, forward.close, lambda: forward.unread(0)):
        with pytest.raises(NotImplementedError):
            ask()


@given(
    st.lists(
        st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=5)
        | st.dictionaries(st.text(), st.text())
    ),
    st.data(),
)
def test_any_array_falls_into_its_values_however_it_is_read(values, data):
    import json  # noqa: PLC0415  # only here

    text = json.dumps(values, indent=data.draw(st.sampled_from([None, 1])), ensure_ascii=data.draw(st.booleans()))
    raw, inside, found, at = text.encode(), False, [], 0
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=4)))
    for cut in [*cuts, len(raw)]:
        step = arrays.find_values(raw[at:cut], inside=inside)
        found += step.values
        at, inside = at + step.consumed, step.inside
    assert [json.loads(value) for value in found] == values
    assert arrays.leftover(raw[at:]) in (b"", b"[")


@given(st.dictionaries(st.text(), st.text() | st.lists(st.text())), st.lists(st.integers(0, 200)))
def test_a_value_that_is_skipped_ends_where_it_ends(value, cuts):
    import json  # noqa: PLC0415  # only here

    text = json.dumps(value).encode()
    whole, skipper, end, at = text + b" , rest", arrays.Skipper(), None, 0
    for cut in [*sorted(cuts), len(whole)]:
        piece = whole[at : max(at, cut)]
        step = skipper.feed(piece) if piece else None
        if step is not None:
            end = at + step
            break
        at += len(piece)
    assert end == len(text)


def test_stray_brackets_lose_nothing_but_themselves():
    assert arrays.find_values(b'} {"a":1} ] {"b":2}', inside=False).values == [b'{"a":1}', b'{"b":2}']
    assert arrays.find_values(b'1} {"a":1},', inside=True).values == [b"1", b'{"a":1}']


class Vanishing(Plain):
    """A file that is truncated, or written anew, right after it was read for the first time."""

    later = b""

    def read(self, offset: int, size: int) -> bytes:
        found = super().read(offset, size)
        if size == CHUNK:
            os.truncate(self.path, 0)
            self.path.write_bytes(self.later)
        return found


@pytest.mark.parametrize(
    "later", [b"", b'{"number":9}\n' * 3, b'{"number":9}\n' * 100], ids=["truncated", "refilled", "grown"]
)
def test_what_is_replaced_while_it_is_read_is_not_consumed(tmp_path, later):
    """Otherwise its position would have a front that no copy has, and the copy would be counted once more."""
    path = tmp_path / "log"
    path.write_bytes(b'{"number":1}\n' * 50)
    content = Vanishing(os.open(path, os.O_RDONLY))
    content.path, content.later = path, later
    log = Log(content, Position(0, 0), LIMIT)
    with pytest.raises(ReplacedError):
        log.advance()
    assert log.position.offset == 0
