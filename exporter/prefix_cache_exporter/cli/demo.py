from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

_RECORDING = "0.32.0"
_SECONDS = 30.0


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `demo`."""
    demo = subparsers.add_parser(
        "demo",
        help="a recorded server replayed, and what the exporter makes of it",
        description="Replays recorded pages of a real vLLM server step by step and prints what an exporter counts.",
        epilog="DEMO_SECONDS sets how long /metrics stays open at the end.",
        allow_abbrev=False,
    )
    demo.add_argument(
        "--seconds",
        type=float,
        metavar="SECONDS",
        help=f"how long /metrics stays open at the end (default: DEMO_SECONDS, or {_SECONDS:g})",
    )
    demo.add_argument(
        "--recording", metavar="NAME", default=_RECORDING, help=f"which recording (default: {_RECORDING})"
    )
    demo.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    from prefix_cache_exporter import logs  # noqa: PLC0415  # heavy, like the others
    from prefix_cache_exporter.cli import DONE, FAILED, USAGE  # noqa: PLC0415
    from prefix_cache_exporter.demo.recording import NoRecordingError, load_recording  # noqa: PLC0415
    from prefix_cache_exporter.demo.replayed import StandstillError, tell  # noqa: PLC0415

    seconds = args.seconds
    if seconds is None:
        text = os.environ.get("DEMO_SECONDS", "") or str(_SECONDS)
        try:
            seconds = float(text)
        except ValueError:
            print(f"demo: DEMO_SECONDS: got {text}, expected a number", file=sys.stderr)
            return USAGE
    logs.setup("warn")
    try:
        tell(load_recording(args.recording), seconds)
    except (NoRecordingError, StandstillError, OSError) as error:
        print(f"demo: {error.args[0] if isinstance(error, LookupError) else error}", file=sys.stderr)
        return FAILED
    return DONE
