# ruff: noqa: E501  # each message of the table stands on one line
from __future__ import annotations

import json
from decimal import Decimal

import pytest

from prefix_cache_exporter.report.billing import BillingError, read_billing


@pytest.fixture
def billed(tmp_path):
    def read(text, name="billing.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return {key: (sums.sums, sums.cost) for key, sums in read_billing(path).items()}

    return read


def test_an_openai_usage_export(billed):
    # as a spreadsheet saves it: a byte-order mark, and rows for several projects
    assert billed(
        "\ufeffstart_time,start_time_iso,num_model_requests,input_tokens,output_tokens,input_cached_tokens,model,batch\n"
        "1790000000,2026-09-21T00:00:00+00:00,3,900,80,600,gpt-6-sol,False\n"
        "1790000000,2026-09-21T00:00:00+00:00,1,100,20,0,gpt-6-sol,True\n"
        "\n"
        "1790086400,,2,50,10,0,gpt-5,\n"
    ) == {
        ("2026-09-21", "gpt-6-sol"): ({"requests": 4, "input": 1000, "read": 600, "output": 100}, {}),
        ("2026-09-22", "gpt-5"): ({"requests": 2, "input": 50, "read": 0, "output": 10}, {}),
    }


def test_an_anthropic_console_export_adds_up_its_disjoint_columns(billed):
    assert billed(
        "usage_date_utc,model_version,usage_input_tokens_no_cache,usage_input_tokens_cache_write_5m,"
        "usage_input_tokens_cache_write_1h,usage_input_tokens_cache_read,usage_output_tokens\n"
        '2026-09-21,claude-opus-5,500,100,50,"1,000",80\n'
    ) == {("2026-09-21", "claude-opus-5"): ({"input": 1650, "read": 1000, "write": 150, "output": 80}, {})}


def test_our_own_names_with_money(billed):
    assert billed(
        "Day,Model,Total input tokens,Cache read tokens,Output tokens,Cost,Currency\n"
        "2026-09-21T23:30:00-02:00,m,100,60,,$1.25,eur\n"
        "2026-09-22,m,100,40,10,0.75,EUR\n"
        ",m,1,0,1,,\n"
    ) == {
        ("2026-09-22", "m"): ({"input": 200, "read": 100, "output": 10}, {"EUR": Decimal("2.00")}),
        ("unknown", "m"): ({"input": 1, "read": 0, "output": 1}, {}),
    }


def test_tables_as_spreadsheets_elsewhere_save_them(billed):
    assert billed(
        "Date;Model;Requests;Input_Tokens;Input_Cached_Tokens;Output_Tokens;Cost\r\n"
        "20260921;gpt-5;1 234;1'000'000;12,345;1200.0;-$1,234.56;\r\n"
        "2026-09-21 00:00:00 UTC;gpt-5;1;5;0;0;0.5\r\n"
    ) == {
        ("2026-09-21", "gpt-5"): (
            {"requests": 1235, "input": 1000005, "read": 12345, "output": 1200},
            {"USD": Decimal("-1234.06")},
        )
    }
    assert billed("day\tmodel\ttotal_input_tokens\n2026-09-21\tm\t7\n") == {("2026-09-21", "m"): ({"input": 7}, {})}


def test_a_column_of_all_writes_is_not_added_to_its_own_parts(billed):
    assert billed(
        "date,model,uncached_input_tokens,cache_read_input_tokens,cache_creation_input_tokens,"
        "ephemeral_5m_input_tokens,ephemeral_1h_input_tokens,output_tokens\n"
        "2026-09-21,claude-opus-5,500,1000,150,100,50,80\n"
        "2026-09-22,claude-opus-5,500,1000,,100,50,80\n"
    ) == {
        ("2026-09-21", "claude-opus-5"): ({"input": 1650, "read": 1000, "write": 150, "output": 80}, {}),
        ("2026-09-22", "claude-opus-5"): ({"input": 1650, "read": 1000, "write": 150, "output": 80}, {}),
    }


def test_reports_of_two_providers_in_one_file_are_both_read(billed):
    assert billed(f"{json.dumps(OPENAI)}\n{json.dumps(ANTHROPIC)}\n") == {
        ("2026-09-21", "gpt-6-sol"): ({"requests": 4, "input": 1000, "read": 600, "write": 150, "output": 80}, {}),
        ("2026-09-21", "claude-opus-5"): ({"input": 1650, "read": 1000, "write": 150, "output": 80}, {}),
    }


OPENAI = {
    "object": "bucket",
    "start_time": 1790000000,
    "end_time": 1790086400,
    "results": [
        {
            "object": "organization.usage.completions.result",
            "input_tokens": 1000,
            "input_cached_tokens": 600,
            "input_cache_write_tokens": 150,
            "input_uncached_tokens": 250,
            "output_tokens": 80,
            "num_model_requests": 4,
            "model": "gpt-6-sol",
        }
    ],
}
ANTHROPIC = {
    "starting_at": "2026-09-21T00:00:00Z",
    "results": [
        {
            "uncached_input_tokens": 500,
            "cache_read_input_tokens": 1000,
            "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 50},
            "output_tokens": 80,
            "model": "claude-opus-5",
        }
    ],
}


@pytest.mark.parametrize(
    ("report", "key", "sums"),
    [
        ({"object": "page", "data": [OPENAI]}, ("2026-09-21", "gpt-6-sol"), {"requests": 4, "input": 1000, "read": 600, "write": 150, "output": 80}),
        (ANTHROPIC, ("2026-09-21", "claude-opus-5"), {"input": 1650, "read": 1000, "write": 150, "output": 80}),
    ],
    ids=["openai", "anthropic"],
)  # fmt: skip
def test_reports_of_the_providers_interfaces(billed, report, key, sums):
    assert billed(json.dumps(report)) == {key: (sums, {})}
    assert billed(f"{json.dumps(report)}\n\n{json.dumps(report)}\n")[key][0]["input"] == 2 * sums["input"]
    assert billed(json.dumps([report, report]))[key][0]["read"] == 2 * sums["read"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"\xff\xfe", "file: got bytes that are not UTF-8, expected CSV or JSON in UTF-8"),
        ("", "header: got nothing, expected columns usage_date_utc, usage_input_tokens_no_cache (Anthropic console, usage) or "),
        ("a,b\n", "header: got a, b, expected columns "),
        ("{", "file: got "),
        ("{}", "file: got no usage buckets, expected aggregates like "),
        ("model,total_input_tokens,day\nm,many,2026-01-01\n", "row 2, total_input_tokens: got many, expected a whole number of tokens or requests"),
        ("model,total_input_tokens,day\nm,-1,2026-01-01\n", "row 2, total_input_tokens: got -1, expected a whole number of tokens or requests"),
        ("model,total_input_tokens,day\n\nm,1,soon\n", "row 3: got soon, expected a day or a time"),
        ("model,total_input_tokens,day\nm,1,99999999999999999\n", "row 2: got 99999999999999999, expected a day or a time"),
        ("model,total_input_tokens,day,cost\nm,1,2026-01-01,free\n", "row 2: got free, expected an amount of money"),
        ("model,total_input_tokens,day,cost\nm,1,2026-01-01,nan\n", "row 2: got nan, expected an amount of money"),
        ("model;total_input_tokens;day;cost\nm;1;2026-01-01;12,345\n", "row 2: got 12,345, expected an amount of money"),
        ("model;total_input_tokens;day;cost\nm;1;2026-01-01;1,25\n", "row 2: got 1,25, expected an amount of money"),
        ("model;total_input_tokens;day\nm;1.234;2026-01-01\n", "row 2, total_input_tokens: got 1.234, expected a whole number of tokens or requests"),
        ("model,total_input_tokens,day\nm,inf,2026-01-01\n", "row 2, total_input_tokens: got inf, expected a whole number of tokens or requests"),
        ("model,total_input_tokens,day\nm,1_0,2026-01-01\n", "row 2, total_input_tokens: got 1_0, expected a whole number of tokens or requests"),
        # thousands without quotes would move every column behind them
        ("model,total_input_tokens,day\nm,1,234,2026-01-01\n", "row 2: got 4 cells, expected 3 as in the header"),
        ("model,total_input_tokens,day\nm,1\n", "row 2: got 2 cells, expected 3 as in the header"),
        ('model,total_input_tokens,day\n"m,1,2026-01-01\n', "row 2: got unexpected end of data, expected cells as CSV quotes them"),
        ("model,total_input_tokens,day,model\nm,1,2026-01-01,n\n", "header: got model twice, expected each column once"),
        # all that was ever billed beside each day's requests would be a difference on every day
        ("model,input_tokens,input_cached_tokens\nm,9100,3922\n", "header: got no column of days, expected one of day, date, start_time_iso, start_time"),
        # left out it would be a difference, and nobody would know why
        (
            json.dumps({"results": [{"input_tokens": count, "input_cached_tokens": 0, "model": "m"} for count in (5, -5)]}),
            "file: got 1 of 2 buckets with input_negative, expected numbers of tokens",
        ),
        ("[" * 100_000, "file: got JSON nested too deeply, expected JSON or JSON lines"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(billed, tmp_path, text, message):
    with pytest.raises(BillingError) as caught:
        billed(text)
    assert str(caught.value).startswith(f"{tmp_path / 'billing.csv'}: {message}")
