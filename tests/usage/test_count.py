from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from prefix_cache_exporter.recorder import Change
from prefix_cache_exporter.release import Release
from prefix_cache_exporter.usage.count import Counting
from prefix_cache_exporter.usage.count_many import count_group
from prefix_cache_exporter.usage.eligible import Eligibility
from prefix_cache_exporter.usage.intake import Group
from prefix_cache_exporter.usage.prices.book import PriceBook
from prefix_cache_exporter.usage.prices.money import record_of
from prefix_cache_exporter.usage.record import UsageRecord
from prefix_cache_exporter.usage.tally import Tally

NOW = 1_772_452_800.0
PRICES = PriceBook()
COUNTS = st.integers(0, 300_000)


def change(tally: Tally) -> dict:
    done = Change()
    tally.flush(done)
    return {(family.id, labels): dict(parts) for (family, labels), parts in done.parts.items()}


def counting() -> Counting:
    return Counting(
        release=lambda: Release(template="t", template_revision="r"),
        prices=PRICES,
        eligibility=Eligibility(block_size_tokens=16),
    )


@st.composite
def groups(draw) -> Group:
    """Plain records as the fast lane gathers them."""
    told = draw(st.sampled_from(["reads", "nothing", "no cache"]))  # the last of sources whose input is all there is
    rows = []
    for _ in range(draw(st.integers(1, 12))):
        uncached, cached, written = draw(COUNTS), draw(COUNTS), draw(st.none() | COUNTS)
        split = {"5m": written} if written and draw(st.booleans()) else {}
        seconds = [draw(st.none() | st.integers(0, 8_000).map(lambda x: x / 8)) for _ in range(2)]
        time = draw(st.none() | st.sampled_from([NOW, NOW - 100_000, NOW + 1000, NOW - 10]))
        total = uncached + (0 if told == "no cache" else cached) + (written or 0)
        known = {"reads": (cached, written, uncached), "no cache": (None, written, uncached)}.get(
            told, (None, written, None)
        )
        rows.append((total, *known, draw(COUNTS), split, time, *seconds))
    extra = draw(
        st.sampled_from([{}, {"eligible_tokens": "70"}, {"eligible_tokens": "?"}, {"leading_fingerprint": "ab"}])
    )
    sample = UsageRecord(
        None,
        "x",
        *draw(
            st.sampled_from(
                [("anthropic", "claude-sonnet-4-5"), ("openai", "gpt-4o"), ("vllm", "m"), ("google", "gemini-2.5-pro")]
            )
        ),
        None,
        draw(st.sampled_from(["success", "failed"])),
        "cache_unknown" if told == "nothing" else "ok",
        (),
        *[None] * 3,
        {},
        None,
        None,
        extra=extra,
    )
    return Group(sample, rows)


@given(groups())
def test_a_group_counts_what_its_records_would(group):
    one_by_one, together = Tally("s"), Tally("s")
    for row in group.rows:
        counting().count(record_of(group.sample, row), one_by_one, NOW)
    count_group(counting(), group, together, NOW)
    assert change(together) == change(one_by_one)
    assert together.fingerprints == one_by_one.fingerprints


def test_a_request_is_in_the_band_of_its_prompt():
    assert counting().band(None) == "unknown"
    assert [counting().band(total) for total in (0, 512, 513, 131072, 131073)] == [
        "0-512",
        "0-512",
        "513-2048",
        "32769-131072",
        "over 131072",
    ]
