"""What a report reads, from flags and configuration: its source, its files, and what reads their lines."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING

from .say import CommandLineError, unknown_format

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from prefix_cache_exporter.config.model import Config, UsageSource
    from prefix_cache_exporter.report.document import Run
    from prefix_cache_exporter.usage.maps.model import UsageMap
    from prefix_cache_exporter.usage.readers import Readers

FIELDS = ("template", "template_revision", "namespace", "tenant", "task", "eligible_tokens", "attempt")
"""What `--field` may say the place of."""


def config_of(args: argparse.Namespace) -> Config:
    """The configuration that the arguments name, or an empty one.

    Raises:
        DocumentError: where it cannot be used.
    """
    from prefix_cache_exporter.config.model import Config

    if not args.config:
        return Config()
    from prefix_cache_exporter.config.load import load_config  # when asked for

    return load_config(args.config)


def source_of(args: argparse.Namespace, config: Config) -> UsageSource:
    """The source that the arguments describe, over the one of the configuration that they choose.

    Raises:
        CommandLineError: where they describe none.
    """
    from msgspec.structs import replace

    from prefix_cache_exporter.config.model import Namespaces, UsageSource

    base = _chosen(args, config) or UsageSource(name="report", format=args.format, paths=())
    spaces = Namespaces(allow=tuple(args.namespaces.split(","))) if args.namespaces else base.namespaces
    fields = {**base.fields, **_fields(args.field)}
    if not spaces.allow and not spaces.buckets:  # nobody asked for a label, so nobody needs to look
        fields = {name: path for name, path in fields.items() if name not in ("namespace", "tenant")}
    includes = args.input_includes_cache
    return replace(
        base,
        format=args.format or base.format,
        provider=args.provider or base.provider,
        input_includes_cache=base.input_includes_cache if includes is None else includes == "true",
        fields=fields,
        namespaces=spaces,
        block_size_tokens=args.block_size or base.block_size_tokens,
        quarantine_file=None,  # a report only counts
    )


def _chosen(args: argparse.Namespace, config: Config) -> UsageSource | None:
    known = {source.name: source for source in config.usage}
    names = ", ".join(known)
    if args.source is not None:
        if args.source not in known:
            expected = f"one of {names}" if known else "--config with a usage source of this name"
            raise CommandLineError("--source", args.source, expected)
        return known[args.source]
    if len(known) == 1:
        return next(iter(known.values()))
    if args.format is None:
        if known:
            raise CommandLineError("--source", "none", f"one of {names}, or --format")
        raise CommandLineError("--format", "none", "a format, or --config with a usage source")
    return None


def _fields(given: list[str]) -> Mapping[str, str]:
    from prefix_cache_exporter.usage.paths import EVERY, PathError, parse_path

    fields = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or name not in FIELDS:
            raise CommandLineError("--field", text, f"NAME=PATH with a name of {', '.join(FIELDS)}")
        try:
            every = EVERY in parse_path(path).steps
        except PathError as error:
            expected = f".key, [0] or ['key'] from character {error.position + 1} on"
            raise CommandLineError("--field", path or "no path", expected) from error
        if every:
            raise CommandLineError("--field", path, "a path to one value, without [*]")
        fields[name] = path
    return fields


def map_of(args: argparse.Namespace, config: Config, source: UsageSource) -> UsageMap:
    """The map of the source's format.

    Raises:
        CommandLineError: where the arguments name a format that there is not, or that is no log's.
        DocumentError: where the configuration does, or a map cannot be used.
    """
    from prefix_cache_exporter.usage.maps.book import MapBook, UnknownFormatError

    try:
        usage_map = MapBook([*config.maps.of("usage"), *args.maps]).get(source.format)
    except UnknownFormatError as error:
        raise _wrong_format(args, config, source, *unknown_format(error)) from error
    if usage_map.aggregate:
        expected = "a format of single requests; --reconcile reads aggregates"
        raise _wrong_format(args, config, source, source.format, expected)
    return usage_map


def _wrong_format(args: argparse.Namespace, config: Config, source: UsageSource, got: str, expected: str) -> ValueError:
    from prefix_cache_exporter.documents import DocumentError

    if args.format:
        return CommandLineError("--format", got, expected)
    number = next(number for number, one in enumerate(config.usage) if one.name == source.name)
    return DocumentError(config.origin, f"usage[{number}].format", got, expected)


def readers_of(source: UsageSource, usage_map: UsageMap, into: Run) -> Readers:
    """What reads the lines of the source.

    Raises:
        DocumentError: where the file with its key cannot be read.
    """
    from prefix_cache_exporter.usage.key_file import read_key
    from prefix_cache_exporter.usage.readers import build_readers

    key_file = source.namespaces.key_file
    return build_readers(source, usage_map, key=read_key(key_file) if key_file else b"", label=into.label)


def paths_of(given: list[str]) -> list[str]:
    """Files as given; a pattern that the shell left alone stands for what it matches.

    Raises:
        OSError: where there is no such file.
    """
    paths = []
    for text in given:
        if Path(text).is_dir():
            raise IsADirectoryError(21, "Is a directory", text)
        if text != "-" and not Path(text).exists() and glob.has_magic(text):
            found = sorted(glob.glob(text, recursive=True))  # noqa: PTH207  # absolute and relative alike
            if not found:
                raise FileNotFoundError(2, "No such file or directory", text)
            paths += found
        else:
            paths.append(text)
    return paths
