from __future__ import annotations

import io
import json
import logging
import re

import pytest

from prefix_cache_exporter import logs
from prefix_cache_exporter.logs import RateLimit, fields
from support.clock import Clock

LOG = logging.getLogger("prefix_cache_exporter.engine.poller")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.fixture
def written():
    """Sets up logging into a buffer; gives the package's logger back as it was."""
    logger = logging.getLogger("prefix_cache_exporter")
    before = (logger.handlers[:], logger.propagate, logger.level)

    def setup(level="info", form="logfmt"):
        stream = io.StringIO()
        logs.setup(level, form, stream)
        return lambda: TIME.sub("TIME", stream.getvalue())

    yield setup
    logger.handlers[:], logger.propagate = before[0], before[1]
    logger.setLevel(before[2])


def test_logfmt(written):
    text = written()
    LOG.warning("poll failed", extra=fields(source="vllm", reason="timeout", held_back=3, again=True, note='a "b"\n'))
    assert text() == (
        'ts=TIME level=warn component=engine.poller msg="poll failed" source=vllm reason=timeout held_back=3 '
        'again=true note="a \\"b\\"\\n"\n'
    )


def test_json(written):
    text = written(form="json")
    LOG.info("listening", extra=fields(address="[::]:10910", when=1.5, other=Clock))
    assert json.loads(text()) == {
        "ts": "TIME",
        "level": "info",
        "component": "engine.poller",
        "msg": "listening",
        "address": "[::]:10910",
        "when": 1.5,
        "other": str(Clock),
    }


@pytest.mark.parametrize(("level", "seen"), [("debug", "dbiwe"), ("info", "iwe"), ("warn", "we"), ("error", "e")])
def test_levels(written, level, seen):
    text = written(level)
    for name, method in (("d", LOG.debug), ("b", LOG.debug), ("i", LOG.info), ("w", LOG.warning), ("e", LOG.error)):
        method(name)
    assert "".join(re.findall(r"msg=(\w)", text())) == seen


@pytest.mark.parametrize("form", ["logfmt", "json"])
def test_an_exception_is_its_kind_and_place_and_never_its_text(written, form):
    """What a parser complains about may be a line of somebody's log."""
    text = written(form=form)
    try:
        json.loads("a secret prompt")
    except ValueError:
        LOG.exception("internal error")
    assert "JSONDecodeError" in text()
    assert "decoder.py:" in text()
    assert "secret" not in text()
    assert "Traceback" not in text()


@pytest.mark.parametrize("form", ["logfmt", "json"])
def test_credentials_of_an_address_are_masked(written, form):
    text = written(form=form)
    LOG.info("polling https://me:hunter2@host/x", extra=fields(url="http://me:hunter2@host/y"))
    assert "hunter2" not in text()
    assert text().count("<masked>@host") == 2


def test_a_rate_limit_counts_what_it_holds_back():
    clock = Clock()
    limit = RateLimit(60, clock)
    assert limit.passes("a") == 0
    assert limit.passes("b") == 0
    assert limit.passes("a") is None
    clock.advance(59)
    assert limit.passes("a") is None
    clock.advance(1)
    assert limit.passes("a") == 2
    assert limit.passes("a") is None
    limit.forget("a")
    limit.forget("never seen")
    assert limit.passes("a") == 0
