from __future__ import annotations

import pytest

from prefix_cache_exporter.documents import DocumentError
from prefix_cache_exporter.usage.prices.files import load_book

BOOK = """
provider: house
source: https://example.org/prices
date: 2026-10-11
models:
- {id: m, match: [m], prices: [{input: 1, read: 0.1x, write: {5m: 1.25x, 1h: 2}}]}
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("date: 2026-10-11", "date: soon", 'date: got "soon", expected a date like 2026-01-31'),
        ("https://example.org/prices", "memory", 'source: got "memory", expected an address that begins with https://'),
        (
            "0.1x",
            "cheap",
            'models[0].prices[0].read: got "cheap", expected a price, or a multiple of the input price like 1.25x',
        ),
        ("input: 1,", "input: -1,", "models[0].prices[0].input: got -1, expected a number that is not negative"),
        ("input: 1,", "", "models[0].prices[0]: got no input, expected the key input"),
        (
            "match: [m]",
            "match: ['/(/']",
            (
                "models[0].match: got /(/ is not a regular expression: "
                "missing ), unterminated subpattern at position 0, expected a pattern like gpt-6* or /^gpt-6/"
            ),
        ),
        (
            "input: 1,",
            "input: 0.0000000000001,",
            "models[0]: got input of 0.0000000000000000001 per token, expected at most 18 decimals per token",
        ),
        (
            "read: 0.1x",
            "cached: 0.1",
            (
                "models[0].prices[0]: got the unknown key cached, "
                "expected one of above, daily, from, input, output, read, to, write"
            ),
        ),
        ("date: 2026-10-11", "date: 2026-13-45", "date: got 2026-13-45, expected a day of the calendar"),
        (
            "input: 1,",
            "from: 2026-02-30, input: 1,",
            "models[0].prices[0].from: got 2026-02-30, expected a day of the calendar",
        ),
        (
            "input: 1,",
            "from: 2026-12-01, to: 2026-11-01, input: 1,",
            (
                "models[0].prices[0]: got from 2026-12-01 to 2026-11-01, "
                "expected a first day before the day that ends it"
            ),
        ),
        ("input: 1,", "input: .inf,", "models[0].prices[0].input: got inf, expected a finite number"),
        ("input: 1,", "input: .nan,", "models[0].prices[0].input: got nan, expected a finite number"),
        (
            "input: 1,",
            "input: 1, above: [{tokens: 9, input: 2}, {tokens: 9, input: 3}],",
            "models[0].prices[0].above[1].tokens: got 9 again, expected each threshold once",
        ),
        (
            "5m: 1.25x",
            "5min: 1.25x",
            (
                'models[0].prices[0].write: got "5min", expected a time to live that records can have: '
                "5m, 30m, 1h, 12h, unknown or * for any other"
            ),
        ),
        (
            "models:",
            "modes: [{when: batch, factor: 0.5, input: 3}]\nmodels:",
            'modes[0]: got {"when": "batch", "factor": 0.5, "input": 3}, expected either a factor or prices',
        ),
    ],
)
def test_a_mistake_is_one_line_with_file_place_got_and_expected(tmp_path, old, new, message):
    path = tmp_path / "book.yaml"
    path.write_text(BOOK.replace(old, new))
    with pytest.raises(DocumentError) as caught:
        load_book(path)
    assert str(caught.value) == f"{path}: {message}"


def test_prices_per_token_are_written_as_people_write_small_numbers(tmp_path):
    path = tmp_path / "book.yaml"
    path.write_text(BOOK.replace("models:", "per: 1\nmodels:").replace("input: 1,", "input: 3e-6, output: 1.5e-05,"))
    rates = load_book(path).models[0].rates(1, None, None)
    assert (rates.input, rates.output, rates.read) == (3 * 10**12, 15 * 10**12, 3 * 10**11)


def test_multiples_follow_the_input_price_of_their_tier_and_mode(tmp_path):
    path = tmp_path / "book.yaml"
    path.write_text(
        BOOK.replace(
            "2}}]}",
            "2}, above: [{tokens: 1000, input: 3}]}], modes: [{when: fast, input: 10}, {when: slow, factor: 0.5}]}",
        )
    )
    model = load_book(path).models[0]

    def rates(total, mode):
        found = model.rates(total, None, mode)
        return [rate // 10**12 for rate in (found.input, found.read * 10, found.write["5m"] * 4, found.write["1h"])]

    assert rates(1000, None) == [1, 1, 5, 2]
    assert rates(1001, None) == [3, 3, 15, 2]
    assert rates(1000, "fast") == [10, 10, 50, 2]
    assert rates(1001, "slow")[:1] == [1]
    assert model.rates(1001, None, "slow").input == 15 * 10**11


def test_the_book_says_where_its_prices_stand(tmp_path):
    path = tmp_path / "book.yaml"
    path.write_text(BOOK)
    rates = load_book(path).models[0].rates(1, None, None)
    assert (rates.source, rates.date) == ("https://example.org/prices", "2026-10-11")
    assert (rates.written("1h"), rates.written("12h"), rates.written("unknown")) == (2 * 10**12, None, None)
