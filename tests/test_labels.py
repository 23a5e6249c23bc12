from __future__ import annotations

import pytest

from prefix_cache_exporter.labels import Bounds, Limits

NAMES = ("source", "namespace")


def bounds(**limits: int) -> Bounds:
    return Bounds(Limits(labels=limits))


def test_values_up_to_the_bound_keep_their_name() -> None:
    bound = bounds(namespace=2)
    assert [bound.bound(NAMES, {"source": "gw", "namespace": ns}) for ns in ("a", "b", "c", "a")] == [
        ("gw", "a"),
        ("gw", "b"),
        ("gw", "other"),
        ("gw", "a"),
    ]
    assert bound.overflow == {"namespace": 1}


def test_a_missing_label_is_empty_and_takes_no_place() -> None:
    bound = bounds(namespace=1)
    assert bound.bound(NAMES, {"source": "gw"}) == ("gw", "")
    assert bound.bound(NAMES, {"source": "gw", "namespace": "a"}) == ("gw", "a")
    assert not bound.overflow


@pytest.mark.parametrize("value", ["mixed", "other", ""])
def test_reserved_values_never_take_a_place(value: str) -> None:
    bound = bounds(namespace=1)
    bound.learn(NAMES, ("gw", value))
    assert bound.bound(NAMES, {"source": "gw", "namespace": value}) == ("gw", value)
    assert bound.bound(NAMES, {"source": "gw", "namespace": "a"}) == ("gw", "a")


def test_values_of_an_earlier_run_keep_their_place_whatever_comes_first() -> None:
    bound = bounds(namespace=2)
    bound.learn(NAMES, ("gw", "known"))
    assert [bound.bound(NAMES, {"namespace": ns})[1] for ns in ("new", "late", "known")] == ["new", "other", "known"]


@pytest.mark.parametrize("value", ["x" * 201, "broken \ud83d"], ids=["too long", "lone surrogate"])
def test_what_cannot_stand_on_a_page_goes_to_other(value: str) -> None:
    bound = bounds()
    assert bound.bound(NAMES, {"source": "gw", "namespace": value}) == ("gw", "other")
    assert bound.overflow == {"namespace": 1}
