"""Strict reading of the YAML that people write: maps, configuration, inventories, price books, pack files.

Every mistake is one line that names the file, the place in it, what stood there and what was expected.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from .mistakes import DocumentError, in_order, refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

    from jsonschema import ValidationError

__all__ = [
    "DocumentError",
    "all_errors",
    "data_root",
    "load_yaml",
    "parse_yaml",
    "place",
    "read_schema",
    "shown",
    "validate",
]
_PACKAGE = Path(__file__).parent
_LONGEST = 80


class _StrictLoader(yaml.CSafeLoader):
    """Safe YAML in which a key stands once; PyYAML alone lets the last one win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":  # `<<: *other`: what stands beside it wins
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str | int | float | bool | None):
                raise yaml.constructor.ConstructorError(None, None, "a key is not a plain word", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key} twice", key_node.start_mark)
            seen.add(key)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        return mapping


# Dates stay text: a schema then says what form they take, and JSON consumers see what was written.
_StrictLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def parse_yaml(text: str | bytes, file: str) -> Any:
    """Parses one YAML document; `file` only names it in errors.

    Raises:
        DocumentError: where the text is not YAML, a key stands twice, or something holds itself.
    """
    try:
        data = yaml.load(text, Loader=_StrictLoader)  # noqa: S506  # a subclass of the safe loader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "document"
        said = error.problem or "a syntax error"
        got = said if isinstance(error, yaml.constructor.ConstructorError) else f"broken YAML ({said})"
        raise DocumentError(file, place, got, "YAML with each key once") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DocumentError(file, "document", " ".join(str(error).split()), "YAML in UTF-8") from error
    if ("&" if isinstance(text, str) else b"&") in text and _holds_itself(data, set(), set()):  # type: ignore[operator]  # alike
        raise DocumentError(file, "document", "an alias within what it stands for", "YAML that ends")
    return data


def _holds_itself(data: Any, around: set[int], done: set[int]) -> bool:
    """Whether a part of a document is, by an alias, within itself: nothing could read it to its end."""
    if not isinstance(data, dict | list) or id(data) in done:
        return False
    if id(data) in around:
        return True
    around.add(id(data))
    parts = data.values() if isinstance(data, dict) else data
    found = any(_holds_itself(part, around, done) for part in parts)
    around.remove(id(data))
    done.add(id(data))
    return found


def load_yaml(path: Path | str) -> Any:
    """Reads one YAML file.

    Raises:
        DocumentError: where the file cannot be read or is not YAML.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise DocumentError(str(path), "file", (error.strerror or "an error").lower(), "a readable file") from error
    return parse_yaml(content, str(path))


def data_root() -> Path:
    """The folder of the shipped facts: inside the wheel, or `metric_maps/` of a checkout."""
    packaged = _PACKAGE / "metric_maps"
    return packaged if packaged.is_dir() else _PACKAGE.parents[1] / "metric_maps"


@cache
def read_schema(name: str) -> dict[str, Any]:
    """The JSON Schema `metric_maps/schema/<name>.schema.json`."""
    schema: dict[str, Any] = json.loads((data_root() / "schema" / f"{name}.schema.json").read_bytes())
    return schema


def validate(data: Any, schema: Mapping[str, Any], file: str) -> None:
    """Holds data against a JSON Schema.

    Raises:
        DocumentError: for all mistakes, in document order, the innermost cause of each.
    """
    refuse(all_errors(data, schema, file))


def all_errors(data: Any, schema: Mapping[str, Any], file: str) -> list[DocumentError]:
    """Every mistake that `validate` raises, in document order."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415  # slow to import, and commands without YAML need none

    found = Draft202012Validator(schema).iter_errors(data)
    return in_order({str(error): error for one in found for error in _explained(one, file)}.values(), data)


def place(path: Iterable[str | int]) -> str:
    """A path within a document as people write it: `engines[0].url`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text or "document"


def shown(value: Any) -> str:
    """A value as an error shows it: JSON, cut short."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _worded(error: ValidationError) -> bool:
    schema: Any = error.schema
    return "errorMessage" in schema


def _explained(error: ValidationError, file: str) -> Iterator[DocumentError]:
    # Of several alternatives, the one that went furthest says most, unless the schema words the mistake itself.
    while error.context and not _worded(error):
        error = max(error.context, key=lambda inner: len(inner.absolute_path))
    where = place(error.absolute_path)
    value: Any = error.validator_value
    instance: Any = error.instance
    schema: Any = error.schema
    if error.validator == "additionalProperties":
        known = schema.get("properties", {})
        expected = f"one of {', '.join(sorted(known)) or 'no keys'}"
        for extra in (key for key in instance if key not in known):
            yield DocumentError(file, where, f"the unknown key {extra}", expected)
    elif error.validator == "required":
        for missing in (key for key in value if key not in instance):
            yield DocumentError(file, where, f"no {missing}", f"the key {missing}")
    else:
        wording = schema.get("errorMessage") or _WORDINGS.get(str(error.validator), _plainly)
        yield DocumentError(
            file, where, shown(instance), wording if isinstance(wording, str) else wording(str(error.validator), value)
        )


def _plainly(validator: str, value: Any) -> str:
    return f"{validator} {shown(value)}"


_WORDINGS: dict[str, Callable[[str, Any], str]] = {
    "type": lambda _, value: " or ".join([value] if isinstance(value, str) else value),
    "enum": lambda _, value: f"one of {', '.join(map(shown, value))}",
    "const": lambda _, value: shown(value),
    "pattern": lambda _, value: f"text matching {value}",
    "minimum": lambda _, value: f"at least {value}",
    "maximum": lambda _, value: f"at most {value}",
    "exclusiveMinimum": lambda _, value: f"more than {value}",
    "minItems": lambda _, value: f"at least {value} of it",
    "minProperties": lambda _, value: f"at least {value} of it",
    "minLength": lambda _, value: f"at least {value} characters",
    "uniqueItems": lambda *_: "each item once",
}
"""What a schema keyword expected, in words; others are shown as they stand."""
