"""Flags, environment and configuration file to one configuration."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from prefix_cache_exporter.config.load import build_config, load_config
from prefix_cache_exporter.documents import load_yaml
from prefix_cache_exporter.release import from_environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prefix_cache_exporter.config.model import Config

COMMAND_LINE = "command line"
"""What an error names instead of a file where a flag is at fault."""
_NAMED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._:-]{0,62})=(https?://.*)")


def load_settings(file: Path | None, flags: Mapping[str, Any], environment: Mapping[str, str]) -> Config:
    """The configuration in force: the file's, with what environment and flags say over it.

    Args:
        file: the configuration file, if any.
        flags: what the command line says, in the shape of the file. Sections are merged key by key, engines are added,
            a release replaces the file's as a whole: half of one and half of another would be neither.
        environment: the process's; `PREFIX_CACHE_RELEASE_*` name a release, the flags' wins over it.

    Raises:
        DocumentError: for the first mistake, naming who made it.
    """
    build_config(dict(flags), COMMAND_LINE, Path())
    data: dict[str, Any] = {}
    if file is not None:
        load_config(file)
        data = dict(load_yaml(file) or {})
    named = from_environment(environment)
    if named is not None:
        data["release"] = {key: value for key, value in asdict(named.in_force).items() if value not in {"", None}}
    for key, value in flags.items():
        if key == "engines":
            data[key] = [*(data.get(key) or ()), *value]
        elif key == "release":
            data[key] = value
        else:
            data[key] = {**(data.get(key) or {}), **value}
    return build_config(data, COMMAND_LINE if file is None else str(file), Path() if file is None else file.parent)


def engines_of(addresses: Sequence[str], engine_version: str | None) -> list[dict[str, Any]]:
    """The engines that `--vllm` names, each an address or `name=address`.

    One that is alone and has no name is called vllm; several are called after their host and port.
    """
    rows = []
    for number, text in enumerate(addresses, start=1):
        match = _NAMED.fullmatch(text)
        url = match[2] if match else text
        name = match[1] if match else "vllm" if len(addresses) == 1 else _place(url) or f"vllm-{number}"
        rows.append({"name": name, "url": url, "engine_version": engine_version})
    return rows


def _place(url: str) -> str:
    """Host and port of an address; empty where it is none, which whoever checks the engine says."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2]
    except ValueError:
        return ""


def prefixes(config: Config) -> tuple[str, str]:
    """The prefix of every path, and what links begin with, each without a slash at its end."""
    outside = urlsplit(config.web.external_url).path.rstrip("/") if config.web.external_url else ""
    prefix = outside if config.web.route_prefix is None else config.web.route_prefix.rstrip("/")
    return prefix, outside or prefix
