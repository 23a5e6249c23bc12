"""The configuration in force, as `/config` shows it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from prefix_cache_exporter.logs import without_credentials

if TYPE_CHECKING:
    from .model import Config


def masked(config: Config) -> str:
    """The effective configuration as YAML, defaults filled in.

    Secrets stand in files and are never read here; a credential that slipped into an address is masked.
    """
    shown = _plain(config)
    del shown["origin"]
    return yaml.safe_dump(shown, sort_keys=False, allow_unicode=True)


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, str):
        return without_credentials(value)
    return dict(value) if hasattr(value, "items") else value
