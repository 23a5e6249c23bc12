"""What holds for all tests."""

from __future__ import annotations

import logging
import signal
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

# The same examples each time, however busy the machine is.
settings.register_profile("tests", deadline=None, derandomize=True, database=None)
settings.load_profile("tests")


@pytest.fixture(autouse=True)
def package_log() -> Iterator[None]:
    """Commands set the package's log up for their process; the next test starts with it untouched."""
    logger = logging.getLogger("prefix_cache_exporter")
    handlers, level, propagate = list(logger.handlers), logger.level, logger.propagate
    yield
    logger.handlers[:] = handlers
    logger.setLevel(level)
    logger.propagate = propagate


@pytest.fixture
def signal_handlers() -> Iterator[None]:
    """For tests that let the process take signals: the next test starts with the handlers that there were."""
    kept = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield
    for each, handler in kept.items():
        signal.signal(each, handler)
