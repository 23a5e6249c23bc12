from __future__ import annotations

import gc
import glob
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from prefix_cache_exporter.config.model import Config, UsageSource
    from prefix_cache_exporter.report.document import Run
    from prefix_cache_exporter.report.progress import Progress
    from prefix_cache_exporter.usage.inventory import Inventory
    from prefix_cache_exporter.usage.prices.book import PriceBook

_FIELDS = ("template", "template_revision", "namespace", "tenant", "task", "eligible_tokens", "attempt")
_OUTPUTS = ("json", "markdown", "csv")


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `report`."""
    report = subparsers.add_parser(
        "report",
        help="what finished usage logs add up to: ratios with both sides, cost, latency, outcomes",
        description="Reads usage logs once and says what they add up to; of every ratio it prints both sides.",
        allow_abbrev=False,
    )
    report.add_argument("files", nargs="+", metavar="FILE", help="logs, gzip too; - is standard input")
    source = report.add_argument_group("what the logs are")
    source.add_argument("--format", metavar="F", help="the usage format; `usage formats` lists them")
    source.add_argument("--config", metavar="FILE", help="take the source's settings from a configuration")
    source.add_argument("--source", metavar="NAME", help="which usage source of the configuration")
    source.add_argument("--provider", help="the provider, whatever records say")
    source.add_argument(
        "--input-includes-cache", choices=("true", "false"), help="whether input counts include cached tokens"
    )
    source.add_argument(
        "--field", action="append", default=[], metavar="NAME=PATH", help=f"where a record keeps {', '.join(_FIELDS)}"
    )
    source.add_argument("--template", help="the template of records that name none")
    source.add_argument("--template-revision", help="its revision")
    source.add_argument("--namespaces", metavar="NAMES", help="names that may stand as namespaces, with commas")
    source.add_argument("--maps", action="append", default=[], metavar="FOLDER", help="usage maps of your own")
    facts = report.add_argument_group("what they are held against")
    facts.add_argument(
        "--prices", action="append", default=[], metavar="FILE", help="price books over the shipped ones"
    )
    facts.add_argument("--currency", help="the currency of price books that name none")
    facts.add_argument("--inventory", metavar="FILE", help="the prefix inventory, for effectiveness")
    facts.add_argument("--block-size", type=int, metavar="TOKENS", help="tokens in a KV block of the engine")
    facts.add_argument("--reconcile", metavar="BILLING", help="compare with a provider's aggregates, CSV or JSON")
    facts.add_argument(
        "--tolerance", type=float, default=0.0, metavar="SHARE", help="relative difference that is none (0)"
    )
    output = report.add_argument_group("what is printed")
    output.add_argument("--by", default="", metavar="DIMENSIONS", help="break down by these, with commas")
    output.add_argument("--groups", type=int, default=1000, metavar="N", help="groups before `other` (1000)")
    for name in _OUTPUTS:
        output.add_argument(f"--{name}", dest="output", action="store_const", const=name, default="text")
    report.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    from prefix_cache_exporter.documents import DocumentError  # noqa: PLC0415  # when run
    from prefix_cache_exporter.usage.maps.book import UnknownFormatError  # noqa: PLC0415  # when run
    from prefix_cache_exporter.usage.paths import PathError  # noqa: PLC0415  # when run

    # A report makes no cycles worth looking for, and looking costs a tenth of its time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _report(args)
    except _UsageError as error:
        print(f"prefix-cache-exporter report: {error}", file=sys.stderr)
        return 2
    except (UnknownFormatError, PathError) as error:
        print(f"prefix-cache-exporter report: {error}", file=sys.stderr)
        return 2
    except DocumentError as error:
        print(error, file=sys.stderr)
    except OSError as error:
        print(f"{error.filename}: {(error.strerror or 'an error').lower()}", file=sys.stderr)
    finally:
        if collecting:
            gc.enable()
    return 1


class _UsageError(ValueError):
    """Arguments that make no sense together."""


def _report(args: argparse.Namespace) -> int:
    from prefix_cache_exporter.report import document, reading, render  # noqa: PLC0415  # when run
    from prefix_cache_exporter.report.progress import Progress  # noqa: PLC0415  # when run
    from prefix_cache_exporter.usage.eligible import Eligibility  # noqa: PLC0415  # when run

    _check_numbers(args)
    by = [name.strip() for name in args.by.split(",") if name.strip()]
    unknown = next((name for name in by if name not in document.DIMENSIONS), None)
    if unknown is not None:
        raise _UsageError(f"--by: got {unknown}, expected some of {', '.join(document.DIMENSIONS)}")
    config, source = _source(args)
    paths = _paths(args.files)
    prices = _prices(args, config)
    inventory = args.inventory or config.inventory.file
    eligibility = Eligibility(
        _inventory(inventory) if inventory else None, block_size_tokens=args.block_size or source.block_size_tokens
    )
    logged = billed = None
    if args.reconcile:
        from prefix_cache_exporter.report import reconcile  # noqa: PLC0415  # when asked for

        billed, logged = reconcile.read_billing(args.reconcile), reconcile.Logged()
    progress = Progress(sys.stderr, reading.size_of(paths))
    groups = document.Groups(by, args.groups)
    into = document.Run(
        groups,
        prices,
        eligibility,
        release=(args.template, args.template_revision),
        logged=logged,
    )
    made = document.run(_reading(args, config, source, progress, into), paths, groups, prices, into)
    progress.close()
    made = {"format": source.format, **made}
    if logged is not None and billed is not None:
        made["reconciliation"] = reconcile.compare(logged, billed, args.tolerance)
    write = {"json": render.to_json, "markdown": render.to_markdown, "csv": render.to_csv, "text": render.to_text}
    sys.stdout.write(write[args.output](made))
    differs = billed is not None and bool(made["reconciliation"]["differences"])
    return 1 if differs or made["unreadable_files"] else 0


def _check_numbers(args: argparse.Namespace) -> None:
    for option, value in (("--block-size", args.block_size), ("--groups", args.groups)):
        if value is not None and value < 1:
            raise _UsageError(f"{option}: got {value}, expected at least 1")
    if not 0 <= args.tolerance < 1:
        raise _UsageError(f"--tolerance: got {args.tolerance:g}, expected a share from 0 to below 1")


def _source(args: argparse.Namespace) -> tuple[Config, UsageSource]:
    """The configuration, or an empty one, and the source that the arguments describe."""
    from prefix_cache_exporter.config.model import Config, Namespaces, UsageSource  # noqa: PLC0415  # when run

    if args.config:
        from prefix_cache_exporter.config.load import load_config  # noqa: PLC0415  # when asked for

        config = load_config(args.config)
    else:
        config = Config()
    known = {source.name: source for source in config.usage}
    if args.source is not None and args.source not in known:
        raise _UsageError(f"--source: got {args.source}, expected one of {', '.join(known) or 'no sources'}")
    chosen = known.get(args.source) or (next(iter(known.values())) if len(known) == 1 else None)
    if chosen is None and args.format is None:
        raise _UsageError("expected --format, or --config with --source")
    fields = dict(chosen.fields) if chosen else {}
    fields.update(_fields(args.field))
    allow = tuple(args.namespaces.split(",")) if args.namespaces else ()
    namespaces = Namespaces(allow=allow) if allow or chosen is None else chosen.namespaces
    if not namespaces.allow and not namespaces.buckets:  # nobody asked for a label, so nobody needs to look
        fields = {name: path for name, path in fields.items() if name not in ("namespace", "tenant")}
    override = {"true": True, "false": False, None: chosen.input_includes_cache if chosen else None}
    return config, UsageSource(
        name=chosen.name if chosen else "report",
        format=args.format or (chosen.format if chosen else ""),
        paths=(),
        provider=args.provider or (chosen.provider if chosen else None),
        input_includes_cache=override[args.input_includes_cache],
        line_limit_bytes=chosen.line_limit_bytes if chosen else 4 << 20,
        dedupe_records=chosen.dedupe_records if chosen else 100_000,
        models=chosen.models if chosen else {},
        fields=fields,
        namespaces=namespaces,
        block_size_tokens=chosen.block_size_tokens if chosen else None,
    )


def _fields(given: list[str]) -> Mapping[str, str]:
    fields = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or name not in _FIELDS:
            raise _UsageError(f"--field: got {text}, expected NAME=PATH with a name of {', '.join(_FIELDS)}")
        fields[name] = path
    return fields


def _reading(args: argparse.Namespace, config: Config, source: UsageSource, progress: Progress, into: Run) -> Any:
    from prefix_cache_exporter.report.reading import Reading  # noqa: PLC0415  # when run
    from prefix_cache_exporter.usage.blocks import Blocks  # noqa: PLC0415  # when run
    from prefix_cache_exporter.usage.intake import Intake  # noqa: PLC0415  # when run
    from prefix_cache_exporter.usage.key_file import read_key  # noqa: PLC0415  # when run
    from prefix_cache_exporter.usage.maps.book import MapBook  # noqa: PLC0415  # when run
    from prefix_cache_exporter.usage.namespaces import Protector  # noqa: PLC0415  # when run
    from prefix_cache_exporter.usage.paths import parse_path  # noqa: PLC0415  # when run

    usage_map = MapBook([*config.maps.of("usage"), *args.maps]).get(source.format)
    if usage_map.aggregate:
        raise _UsageError(f"--format: got {source.format}, which are aggregates: give them to --reconcile")
    namespaces = source.namespaces
    key = read_key(namespaces.key_file) if namespaces.key_file else b""
    protect = Protector(allow=namespaces.allow, buckets=namespaces.buckets, key=key)
    intake = Intake(
        usage_map,
        input_includes_cache=source.input_includes_cache,
        fields=source.fields,
        provider=source.provider,
        models=source.models,
        protect=protect,
        dedupe_records=source.dedupe_records,
    )
    blocks = Blocks(
        usage_map,
        input_includes_cache=source.input_includes_cache,
        fields={name: parse_path(path) for name, path in source.fields.items()},
        provider=source.provider,
        models=source.models,
        protect=protect,
        dedupe_records=source.dedupe_records,
        label=into.label,
    )
    return Reading(intake, blocks, line_limit=source.line_limit_bytes, progress=progress.show)


def _prices(args: argparse.Namespace, config: Config) -> PriceBook:
    from prefix_cache_exporter.usage.prices.book import PriceBook  # noqa: PLC0415  # when run

    return PriceBook.load([*config.prices.files, *args.prices], currency=args.currency or config.prices.currency)


def _inventory(file: str | Path) -> Inventory:
    from prefix_cache_exporter.usage.inventory import load_inventory  # noqa: PLC0415  # when asked for

    return load_inventory(file)


def _paths(given: list[str]) -> list[str]:
    """Files as given; a pattern that the shell left alone stands for what it matches."""
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
