from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .say import DONE, USAGE, failed
from .say import seconds as span

if TYPE_CHECKING:
    import argparse

_LINGER_SECONDS = 30.0


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `demo`."""
    demo = subparsers.add_parser(
        "demo",
        help="a story of four releases on simulated servers, and what the exporter makes of it",
        description="Simulated vLLM servers with traffic, the exporter, and Prometheus and Alertmanager with the "
        "shipped rules where they are installed: a harmless release, one that breaks the prefix, and a roll-back.",
        epilog="The story takes two minutes and a quarter, then all stays open until Ctrl-C or for DEMO_SECONDS.",
        allow_abbrev=False,
    )
    demo.add_argument(
        "--seconds",
        type=span,
        metavar="SECONDS",
        help="how long all stays open after the story (default: DEMO_SECONDS, or until Ctrl-C)",
    )
    demo.add_argument(
        "--recording",
        metavar="NAME",
        help="replay the recorded pages of a real server instead, like 0.32.0, and stay open for SECONDS after them "
        f"(default: {_LINGER_SECONDS:g})",
    )
    demo.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    from prefix_cache_exporter import logs
    from prefix_cache_exporter.demo import replayed, tell
    from prefix_cache_exporter.demo.recording import NoRecordingError, load_recording

    seconds = args.seconds
    if seconds is None and (text := os.environ.get("DEMO_SECONDS", "")):
        try:
            seconds = span(text)
        except ValueError:
            return failed(f"environment: DEMO_SECONDS: got {text}, expected a number of seconds", USAGE)
    logs.setup("warn")
    try:
        if args.recording is None:
            tell.tell(seconds)
        else:
            replayed.tell(load_recording(args.recording), _LINGER_SECONDS if seconds is None else seconds)
    except (NoRecordingError, replayed.StandstillError, OSError) as error:
        return failed(error.args[0] if isinstance(error, LookupError) else error)
    return DONE
