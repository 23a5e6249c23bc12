from __future__ import annotations

import io

from prefix_cache_exporter.report.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def moments(*times):
    return iter(times).__next__


def test_a_long_run_at_a_terminal_shows_a_bar_and_wipes_it_away():
    stream = Terminal()
    progress = Progress(stream, 100_000_000, clock=moments(0.0, 0.5, 2.0, 2.1, 4.0))
    progress.show(10_000_000, 100)  # too early
    progress.show(50_000_000, 1000)
    progress.show(51_000_000, 1010)  # too soon after
    progress.show(200_000_000, 4000)  # the file grew
    progress.close()
    assert stream.getvalue() == (
        "\r[###############               ]  50% of 100 MB, 1,000 lines, 500 lines/s\033[K"
        "\r[##############################] 100% of 100 MB, 4,000 lines, 1,000 lines/s\033[K"
        "\r\033[K"
    )


def test_standard_input_has_no_end_to_measure_against():
    stream = Terminal()
    progress = Progress(stream, None, clock=moments(0.0, 2.0))
    progress.show(50_000_000, 1000)
    assert stream.getvalue() == "\r50 MB, 1,000 lines, 500 lines/s\033[K"


def test_nothing_is_drawn_where_nobody_looks_or_the_run_is_short():
    pipe = io.StringIO()
    progress = Progress(pipe, 100, clock=moments(0.0, 100.0))
    progress.show(100, 1)
    progress.close()
    terminal = Terminal()
    short = Progress(terminal, 100, clock=moments(0.0, 0.9))
    short.show(100, 1)
    short.close()
    assert pipe.getvalue() == terminal.getvalue() == ""
