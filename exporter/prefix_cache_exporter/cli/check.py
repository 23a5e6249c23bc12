from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

CHECKS = (
    "serve",
    "maps",
    "check_log",
    "inventory",
    "pack",
)
"""Command modules with a `register_check(subparsers)`, which adds one `check …` and sets its default `run`."""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `check`, whose own commands are added by the modules that know what is right."""
    check = subparsers.add_parser(
        "check",
        help="hold a file against what the exporter expects, without serving",
        description="Holds a file against what the exporter expects; exits 1 and says what is wrong where it is not.",
        allow_abbrev=False,
    )
    checks = check.add_subparsers(dest="check", metavar="WHAT", required=True)
    for name in CHECKS:
        import_module(f".{name}", __package__).register_check(checks)
