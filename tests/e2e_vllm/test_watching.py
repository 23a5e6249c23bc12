from __future__ import annotations

import pytest

from e2e_vllm.watching import doubts
from prefix_cache_exporter.engine.page import read_page
from prefix_cache_exporter.measures import ENGINE

BELIEVED = """\
# TYPE prefix_cache_engine_map_state gauge
prefix_cache_engine_map_state{source="vllm",state="verified"} 1
prefix_cache_engine_map_state{source="vllm",state="mismatch"} 0
# TYPE prefix_cache_engine_info gauge
prefix_cache_engine_info{source="vllm",model="tiny",engine="0",engine_version="0.32.0"} 1
# TYPE prefix_cache_engine_restarts_total counter
prefix_cache_engine_restarts_total{source="vllm"} 0
"""


def said(page: str) -> list[str]:
    return doubts(read_page(page.encode(), None, [family.name for family in ENGINE.values()]), "0.32.0")


def test_a_page_that_is_believed_gives_no_doubt():
    assert said(BELIEVED) == []


@pytest.mark.parametrize(
    ("page", "doubt"),
    [
        (
            BELIEVED.replace("} 1", "} 2").replace("} 0", "} 1").replace("} 2", "} 0", 1),
            ["map state: expected verified, got mismatch", "restarts: expected none, got 1"],
        ),
        (
            BELIEVED.replace("0.32.0", "0.31.0"),
            ["engine version: expected 0.32.0, got 0.31.0"],
        ),
        (
            BELIEVED + 'prefix_cache_engine_anomalies_total{source="vllm",reason="not_new"} 3\n',
            ["anomalies: expected none, got 3 not_new"],
        ),
        (
            "# TYPE other gauge\nother 1\n",
            ["map state: expected verified, got None", "engine version: expected 0.32.0, got None"],
        ),
    ],
)
def test_what_is_not_believed_is_told(page, doubt):
    assert said(page) == doubt
