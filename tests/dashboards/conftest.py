"""One made history for all tests of this folder."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from support import fleet_data, tsdb

if TYPE_CHECKING:
    from collections.abc import Iterator

RULES = Path(__file__).parents[2] / "alerts"


class History(NamedTuple):
    """A running Prometheus and where its history begins."""

    address: str
    start: float

    @property
    def busy(self) -> float:
        """Both revisions were served in the last hour, the new one is warm."""
        return self.start + fleet_data.BUSY

    @property
    def idle(self) -> float:
        """Every series is there and stands still."""
        return self.start + fleet_data.END

    @property
    def absent(self) -> float:
        """No series any more, beyond every window of a rate."""
        return self.start + fleet_data.END + 7200


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    folder = tmp_path_factory.mktemp("history")
    # Blocks must not lie in the future of the server that is to read them.
    start = float((int(time.time()) - fleet_data.END - 3 * 3600) // 3600 * 3600)
    rules = sorted(RULES.glob("*.rules.yaml"))
    data = tsdb.made(folder, fleet_data.openmetrics(start), rules, start, start + fleet_data.END)
    with tsdb.prometheus(data) as address:
        yield History(address, start)
