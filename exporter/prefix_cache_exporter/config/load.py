from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from prefix_cache_exporter.documents import load_yaml, parse_yaml, read_schema, validate
from prefix_cache_exporter.labels import DEFAULT_LIMITS

from .checks import check
from .model import Config

if TYPE_CHECKING:
    from .model import UsageSource


def load_config(path: Path | str) -> Config:
    """Reads a configuration file.

    Raises:
        DocumentError: for all mistakes, each with file, place, what stood there and what was expected.
    """
    return build_config(load_yaml(path), str(path), Path(path).parent)


def parse_config(text: str | bytes, file: str = "configuration") -> Config:
    """Reads a configuration from text; relative paths start at the working directory.

    Raises:
        DocumentError: for all mistakes.
    """
    return build_config(parse_yaml(text, file), file, Path())


def build_config(data: Any, file: str, folder: Path) -> Config:
    """Makes a configuration of a decoded document; `file` only names it in errors, relative paths start at `folder`.

    Raises:
        DocumentError: for all mistakes.
    """
    data = {} if data is None else data
    validate(data, read_schema("config"), file)
    check(data, file)

    def from_folder(kind: type, value: Any) -> Any:  # msgspec asks here for every Path
        return folder / kind(value)

    config = msgspec.convert(_without_nulls(data), Config, dec_hook=from_folder)
    limits = replace(config.limits, labels=MappingProxyType({**DEFAULT_LIMITS, **config.limits.labels}))
    usage = tuple(_located(source, folder) for source in config.usage)
    return replace(config, limits=limits, usage=usage, origin=file)


def _without_nulls(data: Any) -> Any:
    """Leaves out keys set to null, so that a default stands where the schema allows null for 'not set'."""
    if isinstance(data, dict):
        return {key: _without_nulls(value) for key, value in data.items() if value is not None}
    return [_without_nulls(item) for item in data] if isinstance(data, list) else data


def _located(source: UsageSource, folder: Path) -> UsageSource:
    return replace(source, paths=tuple(path if path == "-" else str(folder / path) for path in source.paths))
