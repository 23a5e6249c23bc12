from __future__ import annotations

from prefix_cache_exporter.usage.intake import Intake
from prefix_cache_exporter.usage.maps.book import get_map
from support.usage_streams import chunk, feed


def test_files_without_end_do_not_fill_memory():
    intake = Intake(get_map("vllm.chat.stream"))
    intake.merger._scopes.most = 2
    for number in range(5):
        feed(intake, chunk(None), scope=str(number))
    assert len(intake.merger._scopes.known) == 2
