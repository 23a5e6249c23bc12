"""Writes the reference of every option from the schema, so that the two cannot differ."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.documents import read_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_INTRODUCTION = """\
# Configuration

<!-- Written from metric_maps/schema/config.schema.json by `make generate`; do not edit. -->

`prefix-cache-exporter --config.file FILE` reads one YAML file. {description}

`prefix-cache-exporter check config FILE` (or `--config.check`) holds a file against this page, looks at every file that
it names, and exits 1 with a line for each mistake: file, place, what stood there and what was expected. A release file
that is not there yet may come later; that is noted, and no mistake. A reload (SIGHUP, or `POST /-/reload`) that finds a
mistake keeps what is in force, and `prefix_cache_exporter_config_last_reload_successful` turns 0. Editors that know
`# yaml-language-server: $schema=…/metric_maps/schema/config.schema.json` complete and check while you type. A tour of
every option is in [example.yml](../example.yml).

Simple use needs no file:

    prefix-cache-exporter serve --vllm http://127.0.0.1:8000 --template support --template-revision r42

The release may also come from the environment: `PREFIX_CACHE_RELEASE_TEMPLATE`,
`PREFIX_CACHE_RELEASE_TEMPLATE_REVISION` and so on for every key of [release](#release) but `file`. Who says it counts
in this order: the usage record itself, the source's release, the flags, the environment, the release at the top level.
A release file wins over the keys that stand beside it.

`--web.config.file` (or `web.config_file`) is TLS, basic authentication and headers in the
[format of Prometheus's exporter-toolkit](https://github.com/prometheus/exporter-toolkit/blob/master/docs/web-configuration.md):
`tls_server_config` with `cert_file`, `key_file`, `client_ca_file`, `client_auth_type`, `min_version`, `max_version`;
`basic_auth_users` with bcrypt hashes; `http_server_config.headers`. What it cannot do it refuses: certificates written
into the file, `cipher_suites`, `curve_preferences`, `client_allowed_sans`, `rate_limit`. `http2` is read and changes
nothing. The file and what it names are followed: a renewed certificate or a changed password needs no restart.
"""


def render(schema: Mapping[str, Any]) -> str:
    """The reference as Markdown."""
    parts = [_INTRODUCTION.format(description=schema["description"])]
    parts += _tables("", schema, schema)
    parts += _tables("release", schema["$defs"]["release"], schema)
    return "\n".join(parts)


def _tables(path: str, section: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    heading = f"## {path or 'Top level'}\n"
    yield heading if not path else f"{heading}\n{_text(section, schema)}\n"
    yield "| Option | Type | Default | Meaning |\n|---|---|---|---|"
    inner: list[tuple[str, Mapping[str, Any]]] = []
    required = section.get("required", ())
    for key, raw in section["properties"].items():
        option = _resolved(raw, schema)
        nested = option.get("items", option)
        nested = _resolved(nested, schema)
        where = f"{path}.{key}" if path else key
        link = _anchor(where)
        if raw.get("$ref", "").endswith("/release"):
            link = "release"
        elif "properties" in nested:
            inner.append((f"{where}[]" if "items" in option else where, nested))
        name = f"[`{key}`](#{link})" if "properties" in nested else f"`{key}`"
        default = "required" if key in required else _default(option)
        yield f"| {name} | {_type(option, schema)} | {default} | {_text(option, schema)} |"
    yield ""
    for where, nested in inner:
        yield from _tables(where, nested, schema)


def _resolved(option: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in option:
        return option
    return {**schema["$defs"][option["$ref"].rpartition("/")[2]], **option}


def _type(option: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    if "enum" in option:
        return ", ".join(f"`{value}`" for value in option["enum"])
    kinds = option["type"] if isinstance(option["type"], list) else [option["type"]]
    kind = next(kind for kind in kinds if kind != "null")
    words = {"string": "text", "object": "section" if "properties" in option else "mapping"}
    if kind == "array":
        return f"list of {_type(_resolved(option['items'], schema), schema)}"
    return f"{words.get(kind, kind)}{_bounds(option)}"


def _bounds(option: Mapping[str, Any]) -> str:
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤"}
    bounds = [f"{sign} {option[keyword]}" for keyword, sign in signs.items() if keyword in option]
    return f", {', '.join(bounds)}" if bounds else ""


def _default(option: Mapping[str, Any]) -> str:
    default = option.get("default")
    return "" if default is None or default in ({}, []) else f"`{json.dumps(default)}`"


def _text(option: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    return str(_resolved(option, schema).get("description", "")).replace("|", "\\|")


def _anchor(where: str) -> str:
    return where.replace(".", "").replace("[]", "").lower()


if __name__ == "__main__":  # pragma: no cover  # `make generate`; the test holds its output against the file
    Path(sys.argv[1]).write_text(render(read_schema("config")), encoding="utf-8")
