"""Typed configuration: a strict schema for people and editors, frozen records for the program."""

from __future__ import annotations

from .load import build_config, load_config, parse_config
from .model import (
    DEFAULT_PORT,
    ClientTls,
    Config,
    EngineSource,
    InventorySettings,
    Limits,
    MapSettings,
    Namespaces,
    PriceSettings,
    ReleaseSpec,
    ShutdownSettings,
    StateSettings,
    UsageSource,
    WebSettings,
)
from .shown import masked

__all__ = [
    "DEFAULT_PORT",
    "ClientTls",
    "Config",
    "EngineSource",
    "InventorySettings",
    "Limits",
    "MapSettings",
    "Namespaces",
    "PriceSettings",
    "ReleaseSpec",
    "ShutdownSettings",
    "StateSettings",
    "UsageSource",
    "WebSettings",
    "build_config",
    "load_config",
    "masked",
    "parse_config",
]
