"""`pack`: writes rules and dashboards from the catalogue and pack.yaml; `check pack`: reads a pack file only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .say import DONE, FAILED, failed, of_file

if TYPE_CHECKING:
    import argparse


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `pack`."""
    parser = subparsers.add_parser(
        "pack",
        help="write recording rules, alerts and dashboards",
        description="Writes recording rules, alerts and dashboards, generated from the catalogue of measures.",
        allow_abbrev=False,
    )
    parser.add_argument("--file", type=Path, metavar="PACK", help="pack file (default: the defaults alone)")
    parser.add_argument("--out", type=Path, default=Path(), metavar="DIR", help="root of the output (default: here)")
    parser.add_argument("--check", action="store_true", help="write nothing; fail and show the diff where files differ")
    parser.set_defaults(run=_pack)


def register_check(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `check pack`."""
    parser = subparsers.add_parser("pack", help="check a pack file", allow_abbrev=False)
    parser.add_argument("file", type=Path, metavar="PACK")
    parser.set_defaults(run=_check)


def _pack(args: argparse.Namespace) -> int:
    from prefix_cache_exporter.documents import DocumentError
    from prefix_cache_exporter.pack import producers, settings, writer

    try:
        chosen = settings.load_settings(args.file) if args.file else settings.default_settings()
        files = writer.outputs(producers.PRODUCERS, chosen, args.out)
        if args.check:
            drift = writer.drift(files)
            print(drift, end="")
            return FAILED if drift else DONE
        for path in writer.write(files):
            print(path)
    except (DocumentError, writer.PackError) as error:
        return failed(error)
    except ModuleNotFoundError as error:
        return failed(_absent(error))
    except BrokenPipeError:  # whoever read what we print went away; that is no error of a file
        raise
    except OSError as error:
        return failed(of_file(error.filename, error, "a folder that can be written"))
    return DONE


def _absent(error: ModuleNotFoundError) -> str:
    """What to install for a package that the sidecar alone does not need."""
    return f"pack: got no package {error.name}, expected pip install 'prefix-cache-exporter[pack]'"


def _check(args: argparse.Namespace) -> int:
    from prefix_cache_exporter.documents import DocumentError
    from prefix_cache_exporter.pack import producers, settings

    try:
        chosen = settings.load_settings(args.file)
        count = sum(len(producer.make(chosen)) for producer in producers.PRODUCERS)
    except DocumentError as error:
        return failed(error)
    except ModuleNotFoundError as error:
        return failed(_absent(error))
    note = ""
    try:
        from prefix_cache_exporter.pack.lint import lint
    except ModuleNotFoundError:
        note = "; expressions not parsed: install prefix-cache-exporter[pack]"
    else:
        findings = lint(chosen)
        if findings:
            return failed("\n".join(f"{args.file}: {finding}" for finding in findings))
    print(f"{args.file}: ok, {count} files to generate{note}")
    return DONE
