from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `serve`, the sidecar."""
    serve = subparsers.add_parser(
        "serve", help="the sidecar: poll, follow, count and answer /metrics", allow_abbrev=False
    )
    serve.set_defaults(run=_run)


def register_check(checks: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `check config FILE`."""
    check = checks.add_parser("config", help="a configuration file", allow_abbrev=False)
    check.add_argument("file", metavar="FILE")
    check.set_defaults(run=_check)


def _run(args: argparse.Namespace) -> int:
    raise NotImplementedError


def _check(args: argparse.Namespace) -> int:
    raise NotImplementedError
