from __future__ import annotations

from prefix_cache_exporter.usage.bands import band_names


def test_bands_have_names():
    assert band_names((512, 2048)) == ("0-512", "513-2048", "over 2048")
    assert band_names(()) == ("over 0",)
