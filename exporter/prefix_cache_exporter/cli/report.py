"""`report`: what finished usage logs add up to."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

from .report_source import FIELDS, config_of, map_of, paths_of, readers_of, source_of
from .say import DONE, FAILED, USAGE, CommandLineError, failed, of_file, share, tokens
from .usage import includes_flag, map_flag

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from prefix_cache_exporter.config.model import Config, UsageSource
    from prefix_cache_exporter.usage.eligible import Eligibility
    from prefix_cache_exporter.usage.prices.book import PriceBook

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
    includes_flag(source)
    source.add_argument(
        "--field", action="append", default=[], metavar="NAME=PATH", help=f"where a record keeps {', '.join(FIELDS)}"
    )
    source.add_argument("--template", help="the template of records that name none")
    source.add_argument("--template-revision", help="its revision")
    source.add_argument("--namespaces", metavar="NAMES", help="names that may stand as namespaces, with commas")
    map_flag(source)
    facts = report.add_argument_group("what they are held against")
    facts.add_argument(
        "--prices", action="append", default=[], metavar="FILE", help="price books over the shipped ones"
    )
    facts.add_argument("--currency", help="the currency of price books that name none")
    facts.add_argument("--inventory", metavar="FILE", help="the prefix inventory, for effectiveness")
    facts.add_argument("--block-size", type=tokens, metavar="TOKENS", help="tokens in a KV block of the engine")
    facts.add_argument("--reconcile", metavar="BILLING", help="compare with a provider's aggregates, CSV or JSON")
    facts.add_argument(
        "--tolerance", type=share, default=0.0, metavar="SHARE", help="relative difference that is none (0)"
    )
    output = report.add_argument_group("what is printed")
    output.add_argument("--by", default="", metavar="DIMENSIONS", help="break down by these, with commas")
    output.add_argument("--groups", type=tokens, default=1000, metavar="N", help="groups before `other` (1000)")
    for name in _OUTPUTS:
        output.add_argument(f"--{name}", dest="output", action="store_const", const=name, default="text")
    report.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    from prefix_cache_exporter.documents import DocumentError

    # A report makes no cycles worth looking for, and looking costs a tenth of its time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _report(args)
    except CommandLineError as error:
        return failed(error, USAGE)
    except DocumentError as error:
        return failed(error)
    except BrokenPipeError:  # whoever read what we print went away; that is no error of a file
        raise
    except OSError as error:
        return failed(of_file(error.filename or ", ".join(args.files), error))
    finally:
        if collecting:
            gc.enable()


def _report(args: argparse.Namespace) -> int:
    from prefix_cache_exporter.report import document, reading, render
    from prefix_cache_exporter.report.progress import Progress

    by = _dimensions(args.by, document.DIMENSIONS)
    config = config_of(args)
    source = source_of(args, config)
    usage_map = map_of(args, config, source)
    paths = paths_of(args.files)
    prices = _prices(args, config)
    eligibility = _eligibility(args, config, source)
    logged = billed = None
    if args.reconcile:
        from prefix_cache_exporter.report import reconcile  # when asked for

        billed, logged = reconcile.read_billing(args.reconcile), reconcile.Logged()
    progress = Progress(sys.stderr, reading.size_of(paths))
    groups = document.Groups(by, args.groups)
    into = document.Run(groups, prices, eligibility, release=(args.template, args.template_revision), logged=logged)
    readers = readers_of(source, usage_map, into)
    read = reading.Reading(*readers, line_limit=source.line_limit_bytes, progress=progress.show)
    made = document.run(read, paths, groups, prices, into)
    progress.close()
    made = {"format": source.format, **made}
    if logged is not None and billed is not None:
        made["reconciliation"] = reconcile.compare(logged, billed, args.tolerance)
    write = {"json": render.to_json, "markdown": render.to_markdown, "csv": render.to_csv, "text": render.to_text}
    sys.stdout.write(write[args.output](made))
    differs = billed is not None and bool(made["reconciliation"]["differences"])
    return FAILED if differs or made["unreadable_files"] else DONE


def _dimensions(text: str, known: Iterable[str]) -> list[str]:
    by = [name.strip() for name in text.split(",") if name.strip()]
    unknown = next((name for name in by if name not in known), None)
    if unknown is not None:
        raise CommandLineError("--by", unknown, f"some of {', '.join(known)}")
    return by


def _prices(args: argparse.Namespace, config: Config) -> PriceBook:
    from prefix_cache_exporter.usage.prices.book import PriceBook

    return PriceBook.load([*config.prices.files, *args.prices], currency=args.currency or config.prices.currency)


def _eligibility(args: argparse.Namespace, config: Config, source: UsageSource) -> Eligibility:
    from prefix_cache_exporter.usage.eligible import Eligibility

    file = args.inventory or config.inventory.file
    if not file:
        return Eligibility(None, block_size_tokens=source.block_size_tokens)
    from prefix_cache_exporter.usage.inventory import load_inventory  # when asked for

    return Eligibility(load_inventory(file), block_size_tokens=source.block_size_tokens)
