"""An engine counts, restarts and changes its release while the sidecar is killed again and again; not a token is lost.

KILL_SEED repeats a run; the seed is printed where it fails. PREFIX_CACHE_KILLS shortens it.
"""

from __future__ import annotations

import os
import random
import re
import sys
import time
from collections import Counter
from contextlib import suppress

import pytest
import requests

from prefix_cache_exporter.web.address import Address
from prefix_cache_exporter.web.http import App, Response, Route
from prefix_cache_exporter.web.server import WebServer
from support import killable
from support.engine_source import TEXT, expected, recorded
from support.ports import free_port
from support.process import total, wait_until

KILLS = int(os.environ.get("PREFIX_CACHE_KILLS", "100"))
RUN = "0.32.0"
MEASURES = ("prompt_tokens", "cached_prompt_tokens", "lookup_tokens", "lookup_hit_tokens", "generation_tokens")
_START = re.compile(rb"^process_start_time_seconds .*$", re.MULTILINE)


class Engine:
    """A server that lives through the recorded steps, dies and begins anew."""

    def __init__(self):
        self.steps, self.life, self.polls = list(recorded(RUN)), 0, 0
        self.begin()
        routes = {"/metrics": Route(self._metrics), "/version": Route(lambda _: Response('{"version": "0.32.0"}'))}
        self.server = WebServer(App(routes), [Address("127.0.0.1", 0)])
        self.server.start()

    def begin(self):
        self.life += 1
        self.step = 0

    def advance(self):
        """One step on; what it counts by that."""
        self.step += 1
        return expected(RUN)[self.steps[self.step]]

    @property
    def at_end(self):
        return self.step == len(self.steps) - 1

    def _metrics(self, _):
        self.polls += 1
        started = b"process_start_time_seconds %d" % (1_800_000_000 + 1_000 * self.life)
        return Response(_START.sub(started, recorded(RUN)[self.steps[self.step]]), content_type=TEXT)


class Sidecar:
    """Comes up on the same port every time."""

    def __init__(self, folder, engine, port):
        self.url, self.kills = f"http://127.0.0.1:{port}/metrics", 0
        self.flags = {
            "web": {"listen_address": [f"127.0.0.1:{port}"]},
            "state": {"path": str(folder / "state.db"), "hold_seconds": 0, "commit_seconds": 0.01},
            "release": {"file": str(folder / "release.yaml")},
            "engines": [{"name": "vllm", "url": f"http://{engine.server.addresses[0]}", "poll_seconds": 0.1}],
        }
        self.process = killable.start(self.flags)

    def kill(self):
        self.process.kill()
        self.process.join()
        self.kills += 1
        self.process = killable.start(self.flags)

    def counted(self):
        """By measure and revision, what the page says; None while there is no page."""
        try:
            page = requests.get(self.url, timeout=10).text
        except requests.RequestException:
            return None
        revisions = set(re.findall(r'template_revision="([^"]*)"', page)) - {""}
        found = Counter()
        for measure in MEASURES:
            for revision in revisions:
                name = f"prefix_cache_engine_{measure}_total"
                found[measure, revision] = total(page, name, template_revision=revision)
        return found


def sums(counted):
    """By measure; None where there is nothing to add."""
    if counted is None:
        return None
    found = Counter()
    for (measure, _), amount in counted.items():
        found[measure] += amount
    return +found


@pytest.mark.kill
def test_the_ledger_is_the_truth_whenever_the_process_is_killed(tmp_path):
    seed = int(os.environ.get("KILL_SEED", random.randrange(2**32)))
    sys.stdout.write(f"KILL_SEED={seed}\n")  # shown where the test fails
    rng = random.Random(seed)
    release = tmp_path / "release.yaml"
    revision = "r1"
    release.write_text(f"{{template: support, template_revision: {revision}}}")
    engine = Engine()
    sidecar = Sidecar(tmp_path, engine, free_port())
    truth = Counter()

    def catch_up():
        """What is on no page when the engine goes, nobody will ever know: the script lets it be seen before."""
        wait_until(lambda: sums(sidecar.counted()) == sums(truth))

    try:
        wait_until(lambda: engine.polls > 1)
        while sidecar.kills < KILLS:
            if engine.at_end:
                catch_up()
                engine.begin()
            elif rng.random() < 0.1:
                catch_up()
                revision = f"r{int(revision[1:]) % 3 + 1}"
                (tmp_path / "next").write_text(f"{{template: support, template_revision: {revision}}}")
                (tmp_path / "next").rename(release)
                seen = engine.polls
                wait_until(lambda seen=seen: engine.polls > seen + 1)
            for measure, increase in engine.advance().items():
                if measure in MEASURES:
                    truth[measure, revision] += increase
            time.sleep(rng.choice((0, rng.uniform(0, 0.3))))
            if rng.random() < 0.9:
                sidecar.kill()
        catch_up()
        counted = sidecar.counted()
        for name, amount in counted.items():
            # A kill between a change of release and the next commit leaves an increase that straddles the change.
            assert amount <= truth[name] or name[1] == "mixed"
        assert engine.life > KILLS // 50
    finally:
        sidecar.process.kill()
        sidecar.process.join()
        with suppress(OSError):
            engine.server.stop()
