"""Strict reading of the YAML that people write: maps, configuration, inventories, price books, pack files.

Every mistake is one line that names the file, the place in it, what stood there and what was expected.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from jsonschema import ValidationError

_PACKAGE = Path(__file__).parent
_LONGEST = 80


class DocumentError(ValueError):
    """A document that cannot be used.

    Attributes:
        file: the file, as the user named it.
        path: the place within the file, like `engines[0].url`, or a line and column.
        got: what stood there.
        expected: what should have stood there.
    """

    def __init__(self, file: str, path: str, got: str, expected: str) -> None:
        self.file, self.path, self.got, self.expected = file, path, got, expected
        super().__init__(f"{file}: {path}: got {got}, expected {expected}")


class _StrictLoader(yaml.CSafeLoader):
    """Safe YAML in which a key stands once; PyYAML alone lets the last one win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
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
        DocumentError: where the text is not YAML, or a key stands twice.
    """
    try:
        return yaml.load(text, Loader=_StrictLoader)  # noqa: S506  # a subclass of the safe loader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "document"
        said = error.problem or "a syntax error"
        got = said if isinstance(error, yaml.constructor.ConstructorError) else f"broken YAML ({said})"
        raise DocumentError(file, place, got, "YAML with each key once") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DocumentError(file, "document", " ".join(str(error).split()), "YAML in UTF-8") from error


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
        DocumentError: for the first mistake in document order, the innermost cause of it.
    """
    errors = _errors(data, schema)
    if errors:
        raise _explain(errors[0], file)


def all_errors(data: Any, schema: Mapping[str, Any], file: str) -> list[DocumentError]:
    """Every mistake that `validate` would raise one by one, in document order."""
    return [_explain(error, file) for error in _errors(data, schema)]


def _errors(data: Any, schema: Mapping[str, Any]) -> list[ValidationError]:
    from jsonschema import Draft202012Validator  # noqa: PLC0415  # slow to import, and commands without YAML need none

    errors = Draft202012Validator(schema).iter_errors(data)
    return sorted(errors, key=lambda error: list(map(str, error.absolute_path)))


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


def _explain(error: ValidationError, file: str) -> DocumentError:
    # Of several alternatives, the one that went furthest says most, unless the schema words the mistake itself.
    while error.context and not _worded(error):
        error = max(error.context, key=lambda inner: len(inner.absolute_path))
    where = place(error.absolute_path)
    value: Any = error.validator_value
    instance: Any = error.instance
    schema: Any = error.schema
    if error.validator == "additionalProperties":
        known = schema.get("properties", {})
        extra = next(key for key in instance if key not in known)
        return DocumentError(file, where, f"the unknown key {extra}", f"one of {', '.join(sorted(known)) or 'no keys'}")
    if error.validator == "required":
        missing = next(key for key in value if key not in instance)
        return DocumentError(file, where, f"no {missing}", f"the key {missing}")
    wording = schema.get("errorMessage") or _WORDINGS.get(str(error.validator), _plainly)(str(error.validator), value)
    return DocumentError(file, where, shown(instance), wording)


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
