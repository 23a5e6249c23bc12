from __future__ import annotations

from pathlib import Path

from prefix_cache_exporter.measures import FAMILIES, RATIOS
from prefix_cache_exporter.measures.reference import render

PAGE = Path(__file__).parents[2] / "docs" / "METRICS.md"


def test_the_page_is_written_from_the_catalogue() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run `make generate` and commit docs/METRICS.md"


def test_every_family_and_ratio_stands_on_it() -> None:
    page = render()
    assert [family.name for family in FAMILIES.values() if f"`{family.series_name}`" not in page] == []
    assert [ratio.title for ratio in RATIOS if f"| {ratio.title} |" not in page] == []
