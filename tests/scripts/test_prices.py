"""The shipped price books are what the generator writes, and charge what their source charges."""

from __future__ import annotations

import datetime as dt
import importlib.util
from decimal import Decimal
from pathlib import Path

import pytest
import yaml
from genai_prices import Usage, data
from genai_prices import types as genai

from prefix_cache_exporter.documents import data_root
from prefix_cache_exporter.usage.prices.book import PriceBook
from prefix_cache_exporter.usage.prices.cost import Cost
from prefix_cache_exporter.usage.prices.files import load_book
from prefix_cache_exporter.usage.record import UsageRecord

ROOT = Path(__file__).parents[2]
_SPEC = importlib.util.spec_from_file_location("generate_prices", ROOT / "scripts" / "prices" / "generate.py")
generate = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(generate)

BOOKS = sorted((ROOT / "metric_maps" / "prices").glob("*.yaml"))
DAYS = (
    dt.datetime(2025, 5, 1, 23, tzinfo=dt.UTC),
    dt.datetime(2026, 11, 1, 12, tzinfo=dt.UTC),
    dt.datetime(2027, 2, 1, 2, tzinfo=dt.UTC),
)
CONTEXTS = (None, {"processing": "batch"}, {"service_tier": "flex"}, {"service_tier": "priority"}, {"speed": "fast"})


def test_committed_books_are_what_the_generator_writes():
    assert generate.main(["--check"]) == 0, "run scripts/prices/generate.py (make generate)"


def test_drift_and_foreign_files_are_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(generate, "BOOKS", tmp_path)
    assert generate.main([]) == 0
    (tmp_path / "openai.yaml").write_text("edited by hand")
    (tmp_path / "mine.yaml").write_text("")

    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "prices: openai.yaml is not what generate.py writes",
        "prices: mine.yaml is not what generate.py writes",
    ]


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_every_shipped_book_keeps_its_schema_and_every_price_is_exact(path):
    assert load_book(path, check=True).models


def _name(clause: genai.MatchLogic) -> str | None:
    """A model name that a clause of the package matches."""
    match clause:
        case genai.ClauseOr(clauses) | genai.ClauseAnd(clauses):
            return next(filter(None, map(_name, clauses)), None)
        case genai.ClauseEquals(text) | genai.ClauseStartsWith(text) | genai.ClauseContains(text):
            return text
        case genai.ClauseEndsWith(text):
            return text
    return None


def _models():
    books = {
        ours: load_book(data_root() / "prices" / f"{ours}.yaml", check=False) for ours in generate.PROVIDERS.values()
    }
    for provider in data.providers:
        for model in provider.models:
            name = _name(model.match)
            if provider.id in generate.PROVIDERS and name:
                yield books[generate.PROVIDERS[provider.id]], provider, model, name.lower()


def test_a_name_finds_the_model_that_the_package_finds_or_none_where_it_was_left_out():
    wrong = []
    for book, provider, _, name in _models():
        found, theirs = book.find(name), provider.find_model(name)
        expected = theirs.id if theirs and theirs.id in {ours.id for ours in book.models} else None
        if (found and found.id) != expected:
            wrong.append((book.provider, name, expected, found and found.id))
    assert not wrong


def test_costs_are_those_of_the_package_for_every_model_date_tier_and_length():
    books, wrong, seen = PriceBook.load(), [], 0
    gaps = yaml.safe_load(generate.GAPS.read_text())
    by_hand = {
        (book, entry["id"]) for book, facts in gaps.items() for entry in facts.get("models", ()) if "prices" in entry
    }
    for book, provider, model, name in _models():
        if provider.find_model(name) is not model or model.id not in {ours.id for ours in book.models}:
            continue
        if (book.provider, model.id) in by_hand:
            continue
        for day in DAYS:
            for context in CONTEXTS:
                if context and not _offered(model, context, day):
                    continue
                for total in (1_000, 150_000, 300_000):
                    seen += 1
                    record, theirs = _priced(book.provider, provider, model, name, (day, context, total))
                    ours = books.cost(record)
                    if not isinstance(ours, Cost) or abs(ours.input + ours.output - theirs) > 2:
                        wrong.append((book.provider, name, context, day, total, ours, theirs))
    assert [entry[:5] for entry in wrong] == []
    assert seen > 4_000


def _offered(model, context, day):
    return any(
        variant.when == context and (variant.constraint is None or variant.constraint.active(day))
        for variant in model.price_variants or ()
    )


def _priced(ours, provider, model, name, request):
    day, context, total = request
    price = model.get_prices(day, context)
    read = total // 2 if price.cache_read_mtok is not None else 0
    write = total // 4 if price.cache_write_mtok is not None else 0
    record = UsageRecord(
        None, "test", ours, name, day.timestamp(), "success", "ok", (), total, read, write,
        {generate.write_ttls(ours, model.id)[-1]: write} if write else {}, total - read - write, 77,
        service_tier=context and (context.get("service_tier") or context.get("speed")),
        batch=bool(context and "processing" in context),
    )  # fmt: skip
    usage = Usage(input_tokens=total, cache_read_tokens=read, cache_write_tokens=write, output_tokens=77)
    whole = model.calc_price(usage, provider, genai_request_timestamp=day, price_context=context).total_price
    if write and ours == "openrouter" and model.id.removeprefix("~").startswith("google/gemini"):
        # The package has what OpenRouter lists: of a write the storage alone, which comes on top of the input price.
        plain = model.calc_price(Usage(input_tokens=total), provider, genai_request_timestamp=day).input_price / total
        whole += write * plain if price.cache_write_mtok < plain * 10**6 else 0
    per_request = price.requests_kcount or Decimal(0)  # a fee per search, which is not a token's price
    return record, int((whole - per_request / 1000) * 10**12)
