from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, TextIO

import requests
from prometheus_client.parser import text_string_to_metric_families

from prefix_cache_exporter import measures
from prefix_cache_exporter.config.model import DEFAULT_PORT
from prefix_cache_exporter.serve.ending import Event, Signals
from prefix_cache_exporter.serve.settings import load_settings
from prefix_cache_exporter.serve.sidecar import Options, Sidecar
from prefix_cache_exporter.web.address import Address
from prefix_cache_exporter.web.server import WebServer

from .recording import Recording, Replay

if TYPE_CHECKING:
    from collections.abc import Callable

_ANY = Address("127.0.0.1", 0)
_POLL_SECONDS = 0.1
_PATIENCE_SECONDS = 30.0
_PROMPT, _CACHED = measures.ENGINE["prompt_tokens"], measures.ENGINE["cached_prompt_tokens"]


class StandstillError(RuntimeError):
    """The exporter did not poll the replayed server in time."""


def tell(
    recording: Recording, seconds: float, out: TextIO = sys.stdout, pause: Callable[[float], object] = time.sleep
) -> None:
    """Replays a recording step by step to an exporter, prints what it makes of each, and leaves it running for a while.

    Args:
        recording: the pages.
        seconds: how long `/metrics` stays open at the end, unless SIGINT or SIGTERM comes before.
        out: where lines go.
        pause: between steps, so that a person can follow.

    Raises:
        StandstillError: where the exporter does not poll in time.
    """
    say = partial(print, file=out, flush=True)
    with ExitStack() as stack:
        replay = Replay(recording)
        upstream = WebServer(replay.app(), [_ANY])
        upstream.start()
        stack.callback(upstream.stop)
        sidecar = _sidecar(upstream.addresses[0])
        sidecar.signals.install()
        stack.callback(sidecar.close)
        page = f"http://{sidecar.web.addresses[0]}"
        say(
            f"A server of vLLM {recording.version} as it was recorded, replayed step by step at http://{upstream.addresses[0]}"
        )
        say(f"The exporter beside it: {page}/metrics\n")
        say(f"{'step':<28}{'prompt tokens':>14}{'cached':>9}   population hit ratio so far: cached / prompt tokens")
        before = (0.0, 0.0)
        while True:
            if not replay.wait_for_polls(2, _PATIENCE_SECONDS):  # at the second, the first has been counted
                raise StandstillError(f"the exporter did not poll step {replay.step} within {_PATIENCE_SECONDS:g} s")
            sidecar.recorder.commit()
            after = _totals(f"{page}/metrics")
            say(_line(replay.step, before, after))
            before = after
            if not replay.advance():
                break
            pause(0.1)
        say(f"\n{page} stays open for {seconds:g} s; Ctrl-C ends it.")
        _linger(sidecar.signals, seconds)


def _sidecar(upstream: Address) -> Sidecar:
    """An exporter at its default port, or at another where that one is taken."""
    for port in (DEFAULT_PORT, 0):
        flags = {
            "web": {"listen_address": [f"127.0.0.1:{port}"]},
            "state": {"hold_seconds": 0},
            "release": {"template": "demo", "template_revision": "r1"},
            "engines": [{"name": "vllm", "url": f"http://{upstream}", "poll_seconds": _POLL_SECONDS}],
        }
        sidecar = Sidecar(partial(load_settings, None, flags, {}), Options(watch_seconds=0))
        try:
            sidecar.start()
        except OSError:
            sidecar.close()
            if not port:
                raise
        else:
            return sidecar
    raise AssertionError  # pragma: no cover  # the loop's last turn returns or raises


def _totals(url: str) -> tuple[float, float]:
    """Prompt and cached tokens as anybody can read them from the page."""
    text = requests.get(url, params={"name[]": [_PROMPT.series_name, _CACHED.series_name]}, timeout=10).text
    found = {
        family.name: sum(sample.value for sample in family.samples) for family in text_string_to_metric_families(text)
    }
    return found.get(_PROMPT.name, 0.0), found.get(_CACHED.name, 0.0)


def _line(step: str, before: tuple[float, float], after: tuple[float, float]) -> str:
    prompt, cached = after
    ratio = f"{cached:,.0f} / {prompt:,.0f} = {cached / prompt:.1%}" if prompt else "no traffic yet"
    return f"{step:<28}{prompt - before[0]:>+14,.0f}{cached - before[1]:>+9,.0f}   {ratio}"


def _linger(signals: Signals, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0 and signals.wait(left) is not Event.END:
        pass
