from __future__ import annotations

import json

import pytest

from prefix_cache_exporter.cli import run
from prefix_cache_exporter.report import reconcile
from prefix_cache_exporter.report.tally import Tally
from prefix_cache_exporter.usage.prices.cost import Unpriced
from support.records import record


def line(id_, day, model, prompt, cached):
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": 10,
        "total_tokens": prompt + 10,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    return {"id": id_, "timestamp": f"{day}T12:00:00Z", "model": model, "usage": usage}


LINES = [
    line("1", "2026-09-21", "gpt-5", 1000, 600),
    line("2", "2026-09-21", "gpt-5", 1000, 0),
    line("3", "2026-09-22", "gpt-5", 500, 0),
    line("4", "2026-09-22", "gpt-4o", 100, 0),
    {"id": "5", "timestamp": "2026-09-21T12:00:00Z", "model": "gpt-5", "usage": None},
]
HEADER = "day,model,num_model_requests,input_tokens,input_cached_tokens,output_tokens\n"


def differences(document):
    return [tuple(row.values()) for row in document["reconciliation"]["differences"]]


def test_agreement_has_no_differences(log, report, tmp_path):
    (tmp_path / "billing.csv").write_text(
        f"{HEADER}2026-09-21,gpt-5,2,2000,600,20\n2026-09-22,gpt-5,1,500,0,10\n2026-09-22,gpt-4o,1,100,0,10\n"
    )
    document = report(log(LINES), "--format", "openai.chat", "--reconcile", tmp_path / "billing.csv")
    assert document["reconciliation"] == {
        "compared": 10,
        "tolerance": 0.0,
        "by_model": True,
        "costs_not_compared": 0,
        "records_not_compared": 0,
        "differences": [],
    }


def test_differences_are_listed_by_day_and_model(log, report, tmp_path):
    (tmp_path / "billing.csv").write_text(
        f"{HEADER}2026-09-21,gpt-5,2,2100,600,20\n2026-09-22,gpt-5,1,500,0,10\n2026-09-23,gpt-5,1,7,0,1\n"
    )
    document = report(log(LINES), "--format", "openai.chat", "--reconcile", tmp_path / "billing.csv", status=1)
    assert differences(document) == [
        ("2026-09-21", "gpt-5", "total_input_tokens", 2000, 2100, -100, -100 / 2100),
        ("2026-09-22", "gpt-4o", "requests", 1, None, None, None),
        ("2026-09-22", "gpt-4o", "total_input_tokens", 100, None, None, None),
        ("2026-09-22", "gpt-4o", "output_tokens", 10, None, None, None),
        ("2026-09-23", "gpt-5", "requests", None, 1, None, None),
        ("2026-09-23", "gpt-5", "total_input_tokens", None, 7, None, None),
        ("2026-09-23", "gpt-5", "output_tokens", None, 1, None, None),
    ]


def test_a_tolerance_and_money(log, report, tmp_path):
    (tmp_path / "billing.csv").write_text(
        "day,model,total_input_tokens,cost\n2026-09-21,gpt-5,2100,0.002025\n2026-09-22,gpt-5,500,0.01\n"
        "2026-09-22,gpt-4o,100,0.00035\n"
    )
    arguments = (log(LINES), "--format", "openai.chat", "--reconcile", tmp_path / "billing.csv", "--tolerance", "0.05")
    document = report(*arguments, status=1)
    # 1,400 at 1.25, 600 at 0.125 and 20 at 10 per million are 0.002025
    assert [row[:4] for row in differences(document)] == [("2026-09-22", "gpt-5", "cost_USD", 0.000725)]


def test_the_comparison_in_every_form(log, tmp_path, capsys):
    (tmp_path / "billing.csv").write_text(f"{HEADER}2026-09-21,gpt-5,2,2100,600,20\n")
    arguments = ["report", str(log(LINES[:2])), "--format", "openai.chat", "--reconcile", str(tmp_path / "billing.csv")]
    assert run(arguments) == 1
    assert capsys.readouterr().out.splitlines()[-4:] == [
        "  differences from the provider's aggregates",
        "    day         model  measure             logged  billed  difference  relative",
        "    2026-09-21  gpt-5  total_input_tokens   2,000   2,100        -100    -4.8 %",
        "    note: 4 numbers compared, 1 differ",
    ]
    assert run([*arguments, "--markdown"]) == 1
    assert "## Differences from the provider's aggregates" in capsys.readouterr().out
    assert run([*arguments, "--csv"]) == 1
    assert capsys.readouterr().out == (
        "day,model,measure,logged,billed,difference,relative\n"
        "2026-09-21,gpt-5,total_input_tokens,2000,2100,-100,-0.047619047619047616\n"
    )


def test_money_is_not_compared_where_a_record_has_no_price(log, report, tmp_path):
    (tmp_path / "billing.csv").write_text("day,model,total_input_tokens,cost\n2026-09-21,ours,1000,1\n")
    path = log([line("1", "2026-09-21", "ours", 1000, 0)])
    document = report(path, "--format", "openai.chat", "--reconcile", tmp_path / "billing.csv")
    assert document["reconciliation"]["compared"] == 1
    assert document["reconciliation"]["costs_not_compared"] == 1


def test_a_cost_without_its_output_is_not_compared(log, report, tmp_path):
    # 900 tokens in cost 0.001125; what came out nobody logged, and it is not free
    (tmp_path / "billing.csv").write_text("day,model,total_input_tokens,cost\n2026-09-21,gpt-5,900,0.001125\n")
    usage = {"prompt_tokens": 900, "prompt_tokens_details": {"cached_tokens": 0}}
    path = log([{"id": "1", "timestamp": "2026-09-21T12:00:00Z", "model": "gpt-5", "usage": usage}])
    document = report(path, "--format", "openai.chat", "--reconcile", tmp_path / "billing.csv")
    assert (document["reconciliation"]["compared"], document["reconciliation"]["costs_not_compared"]) == (1, 1)


@pytest.mark.parametrize(("currency", "left"), [("eur", 0), ("EUR", 0), ("CHF", 1)])
def test_a_bill_in_another_currency_is_not_compared_with_nothing(log, report, tmp_path, currency, left):
    # 1,000 tokens at 2 per million and 10 at 10 are 0.0021
    (tmp_path / "billing.csv").write_text(
        "day,model,total_input_tokens,cost,currency\n2026-09-21,ours,1000,0.0021,eur\n"
    )
    (tmp_path / "prices.yaml").write_text(
        "provider: openai\nsource: https://example.org/c\ndate: 2026-09-01\n"
        f"currency: {currency}\nmodels: [{{id: m, match: [ours], prices: [{{input: 2, output: 10}}]}}]\n"
    )
    path = log([line("1", "2026-09-21", "ours", 1000, 0)])
    arguments = ("--format", "openai.chat", "--prices", tmp_path / "prices.yaml")
    found = report(path, *arguments, "--reconcile", tmp_path / "billing.csv")["reconciliation"]
    assert (found["compared"], found["costs_not_compared"], found["differences"]) == (2 - left, left, [])


def test_aggregates_that_name_no_models_are_compared_by_day(log, report, tmp_path):
    # OpenAI's usage interface without group_by=model
    bucket = {
        "start_time": 1789948800,
        "results": [
            {"input_tokens": 2000, "input_cached_tokens": 600, "output_tokens": 20, "num_model_requests": 3}
        ],
    }  # fmt: skip
    (tmp_path / "billing.json").write_text(json.dumps({"data": [bucket]}))
    lines = [*LINES[:2], line("6", "2026-09-21", "gpt-4o", 7, 0)]
    arguments = (log(lines), "--format", "openai.chat", "--reconcile", tmp_path / "billing.json")
    document = report(*arguments, status=1)
    assert document["reconciliation"]["by_model"] is False
    assert differences(document) == [
        ("2026-09-21", "", "total_input_tokens", 2007, 2000, 7, 7 / 2000),
        ("2026-09-21", "", "output_tokens", 30, 20, 10, 10 / 20),
    ]
    assert document["reconciliation"]["compared"] == 4  # requests and reads agree


def test_days_and_models_are_boundedly_many(monkeypatch):
    monkeypatch.setattr(reconcile, "_MOST", 1)
    logged = reconcile.Logged()
    for model in ("a", "b", "a"):
        tally = Tally()
        tally.add(record(model=model, total=10, read=0, output=1), Unpriced("unknown_model"), None)
        logged.add(("2026-09-21", model), tally)
    compared = reconcile.compare(logged, {})
    assert compared["records_not_compared"] == 1
    assert [row["logged"] for row in compared["differences"]] == [2, 20, 2]
