from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from prefix_cache_exporter import documents
from prefix_cache_exporter.documents import (
    DocumentError,
    all_errors,
    load_yaml,
    parse_yaml,
    read_schema,
    shown,
    validate,
)

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 2, "pattern": "^[a-z]+$"},
        "port": {"type": ["integer", "null"], "minimum": 1, "maximum": 65535},
        "ratio": {"exclusiveMinimum": 0},
        "kind": {"enum": ["a", "b"]},
        "version": {"const": 1},
        "list": {"type": "array", "minItems": 1, "uniqueItems": True, "items": {"type": "integer"}},
        "map": {"type": "object", "minProperties": 1, "maxProperties": 1},
        "either": {"oneOf": [{"type": "integer"}, {"type": "object", "properties": {"x": {"type": "integer"}}}]},
        "secret": {"type": "string", "errorMessage": "a path to a file"},
    },
}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "document: got no name, expected the key name"),
        ([], "document: got [], expected object"),
        (
            {"name": "ok", "prot": 1},
            "document: got the unknown key prot, expected one of either, kind, list, map,",
        ),
        ({"name": "x"}, 'name: got "x", expected at least 2 characters'),
        ({"name": "OK"}, 'name: got "OK", expected text matching ^[a-z]+$'),
        ({"name": "ok", "port": 0}, "port: got 0, expected at least 1"),
        ({"name": "ok", "port": 70000}, "port: got 70000, expected at most 65535"),
        ({"name": "ok", "port": "x"}, 'port: got "x", expected integer or null'),
        ({"name": "ok", "ratio": 0}, "ratio: got 0, expected more than 0"),
        ({"name": "ok", "kind": "c"}, 'kind: got "c", expected one of "a", "b"'),
        ({"name": "ok", "version": 2}, "version: got 2, expected 1"),
        ({"name": "ok", "list": []}, "list: got [], expected at least 1 of it"),
        ({"name": "ok", "list": [1, "x"]}, 'list[1]: got "x", expected integer'),
        ({"name": "ok", "list": [1, 1]}, "list: got [1, 1], expected each item once"),
        ({"name": "ok", "map": {}}, "map: got {}, expected at least 1 of it"),
        ({"name": "ok", "map": {"a": 1, "b": 2}}, 'map: got {"a": 1, "b": 2}, expected maxProperties 1'),
        ({"name": "ok", "either": {"x": "y"}}, 'either.x: got "y", expected integer'),
        ({"name": "ok", "secret": 5}, "secret: got 5, expected a path to a file"),
    ],
)
def test_one_line_says_where_what_and_what_was_expected(data: Any, message: str) -> None:
    with pytest.raises(DocumentError) as caught:
        validate(data, SCHEMA, "f.yaml")
    assert str(caught.value).startswith(f"f.yaml: {message}")


def test_all_errors_lists_every_mistake_in_order() -> None:
    found = all_errors({"port": 0, "kind": "c"}, SCHEMA, "f")
    assert [error.path for error in found] == ["document", "port", "kind"]


def test_mistakes_are_told_in_the_order_of_the_file_each_once() -> None:
    data = {"z": [1, "x", *["1"] * 9], "a": {"b.c": 1, "b": {"c": 2}, 5: 3}}
    names = {"type": "object", "additionalProperties": {"type": "string"}}
    schema = {
        "required": ["one", "two"],
        "properties": {"z": {"items": {"type": "integer"}}, "a": {**names, "properties": {"b": names}}},
    }
    assert [(error.path, error.got) for error in all_errors(data, schema, "f")] == [
        ("document", "no one"),
        ("document", "no two"),
        ("z[1]", '"x"'),
        *[(f"z[{number}]", '"1"') for number in range(2, 11)],
        ("a.b.c", "1"),
        ("a.b.c", "2"),
        ("a[5]", "3"),
    ]


def test_all_mistakes_are_told_at_once_and_of_very_many_the_first() -> None:
    with pytest.raises(DocumentError) as caught:
        validate({"name": "ok", "kind": "c", "port": 0}, SCHEMA, "f")
    assert str(caught.value).splitlines() == [
        'f: kind: got "c", expected one of "a", "b"',
        "f: port: got 0, expected at least 1",
    ]
    assert (caught.value.path, len(caught.value.each)) == ("kind", 2)
    with pytest.raises(DocumentError) as caught:
        validate({"name": "ok", "list": list("abcdefghijklmnopqrstuvwxyz")}, SCHEMA, "f")
    lines = str(caught.value).splitlines()
    assert (len(lines), lines[0], lines[-1]) == (21, 'f: list[0]: got "a", expected integer', "6 more mistakes")


def test_good_data_passes() -> None:
    validate({"name": "ok"}, SCHEMA, "f")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2", "f: line 2, column 1: got the key a twice, expected YAML with each key once"),
        (
            "a: [1",
            "f: line 2, column 1: got broken YAML (did not find expected ',' or ']'), expected YAML with each key once",
        ),
        ("? [1, 2]\n: 3", "f: line 1, column 3: got a key is not a plain word, expected YAML with each key once"),
        ("!!python/object:os.system x", "f: line 1, column 1: got could not determine a constructor"),
        (b"a: \xff", "f: document: got "),
    ],
)
def test_what_is_not_plain_yaml_is_refused(text: str | bytes, message: str) -> None:
    with pytest.raises(DocumentError) as caught:
        parse_yaml(text, "f")
    assert str(caught.value).startswith(message)


def test_a_mapping_may_stand_on_another_one() -> None:
    text = "all: &all {a: 1, b: 2}\none: {<<: *all, b: 3}"
    assert parse_yaml(text, "f") == {"all": {"a": 1, "b": 2}, "one": {"a": 1, "b": 3}}
    with pytest.raises(DocumentError, match=r"f: line 2, column 23: got the key b twice"):
        parse_yaml(f"{text[:-1]}, b: 4}}", "f")


def test_dates_stay_as_they_are_written() -> None:
    assert parse_yaml("from: 2026-11-29", "f") == {"from": "2026-11-29"}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"none\.yaml: file: got no such file or directory, expected a rea"):
        load_yaml(tmp_path / "none.yaml")


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_text("a: é", encoding="utf-8")
    assert load_yaml(tmp_path / "f.yaml") == {"a": "é"}


def test_long_values_are_cut_in_messages() -> None:
    assert shown("x" * 200) == '"' + "x" * 79 + "…"


def test_shipped_schemas_are_sound() -> None:
    for path in (documents.data_root() / "schema").glob("*.schema.json"):
        Draft202012Validator.check_schema(read_schema(path.name.removesuffix(".schema.json")))


def test_a_wheel_carries_its_facts_beside_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "metric_maps").mkdir()
    monkeypatch.setattr(documents, "_PACKAGE", tmp_path)
    assert documents.data_root() == tmp_path / "metric_maps"


@pytest.mark.parametrize("text", ["a: &a [*a]", "&a {b: {c: *a}}", "x: &x {y: [{z: *x}]}\n"])
def test_a_part_that_holds_itself_is_told(text):
    with pytest.raises(DocumentError) as raised:
        parse_yaml(text, "f.yaml")
    assert str(raised.value) == "f.yaml: document: got an alias within what it stands for, expected YAML that ends"


def test_a_part_that_stands_in_several_places_is_looked_at_once():
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 30))
    assert parse_yaml(f"l0: &l0 [x]\n{levels}", "f.yaml")["l0"] == ["x"]
