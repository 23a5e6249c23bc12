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
        "> c             -  x\\ny",
    ]


def test_markdown_escapes_what_would_break_it():
    assert as_markdown(HEADER, ROWS) == [
        "| name | count | note |",
        "| --- | ---: | --- |",
        "| a\\|b | 1,234,567 | - |",
        "| c | - | x\\\\ny |",
    ]


@pytest.mark.parametrize(
    ("name", "text", "in_markdown", "in_csv"),
    [
        ("gpt-5_mini", "gpt-5_mini", "gpt-5_mini", "gpt-5_mini"),
        ("=cmd|'/C calc'!A0", "=cmd|'/C calc'!A0", "=cmd\\|'/C calc'!A0", "'=cmd|'/C calc'!A0"),
        ("@cf/llama", "@cf/llama", "@cf/llama", "'@cf/llama"),
        (" +1", " +1", " +1", "' +1"),
        ("-2", "-2", "-2", "'-2"),
        ("a\r\nb", "a\\r\\nb", "a\\\\r\\\\nb", "a\\r\\nb"),
        ("\x1b[31m", "\\x1b[31m", "\\\\x1b\\[31m", "\\x1b[31m"),
        ("\u202eevil", "\\u202eevil", "\\\\u202eevil", "\\u202eevil"),
        ("<b>&amp;`x`", "<b>&amp;`x`", "\\<b\\>\\&amp;\\`x\\`", "<b>&amp;`x`"),
        ("__x__ *y*", "__x__ *y*", "\\_\\_x\\_\\_ \\*y\\*", "__x__ *y*"),
        ("back\\|pipe", "back\\|pipe", "back\\\\\\|pipe", "back\\|pipe"),
    ],
)
def test_names_from_logs_are_shown_as_they_stand_and_do_nothing(name, text, in_markdown, in_csv):
    assert shown(name) == text
    assert as_markdown(("n",), [(name,)])[2] == f"| {in_markdown} |"
    assert as_csv(("n",), [(name,)]) == f"n\n{in_csv}\n"


def test_csv_has_plain_numbers_and_nothing_for_unknown():
    assert as_csv(("a", "b"), [("x,y", Decimal("1E-12")), (None, 1000000)]) == 'a,b\n"x,y",0.000000000001\n,1000000\n'
