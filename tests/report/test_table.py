from __future__ import annotations

from decimal import Decimal

import pytest

from prefix_cache_exporter.report.table import as_csv, as_markdown, as_text, percent, shown

HEADER = ("name", "count", "note")
ROWS = [("a|b", 1234567, None), ("c", None, "x\ny")]


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (None, "-"),
        ("word", "word"),
        (1234567, "1,234,567"),
        (Decimal("1234.5"), "1,234.5"),
        (Decimal("30.600000"), "30.6"),
        (Decimal(0), "0"),
        (Decimal(100), "100"),
        (Decimal("0.000000000001"), "1.00e-12"),
        (Decimal("-2.5"), "-2.5"),
        (True, "True"),
    ],
)
def test_cells_for_people(cell, text):
    assert shown(cell) == text


def test_percent():
    assert (percent(0.4587), percent(None), percent(1.0)) == ("45.9 %", "-", "100.0 %")


def test_text_aligns_numbers_to_the_right():
    assert as_text(HEADER, ROWS, "> ") == [
        "> name      count  note",
        "> a|b   1,234,567  -",
        "> c             -  x\ny",
    ]


def test_markdown_escapes_what_would_break_it():
    assert as_markdown(HEADER, ROWS) == [
        "| name | count | note |",
        "| --- | ---: | --- |",
        "| a\\|b | 1,234,567 | - |",
        "| c | - | x y |",
    ]


def test_csv_has_plain_numbers_and_nothing_for_unknown():
    assert as_csv(("a", "b"), [("x,y", Decimal("1E-12")), (None, 1000000)]) == 'a,b\n"x,y",0.000000000001\n,1000000\n'
