from __future__ import annotations

import pytest

from prefix_cache_exporter.usage.reprs import from_repr


@pytest.mark.parametrize(
    ("text", "members"),
    [
        (
            "CompletionTokensDetails(reasoning_tokens=3, audio_tokens=None)",
            {"reasoning_tokens": "3", "audio_tokens": None},
        ),
        ("{'cached_tokens': 1920, 'ok': True}", {"cached_tokens": "1920", "ok": True}),
        ('{"cached_tokens": 1920}', {"cached_tokens": 1920}),
        ('"{\\"cached_tokens\\": 1920}"', {"cached_tokens": 1920}),
        ("Usage(a=1, b=Inner(c=2, d='x=9, y=8'), e=3)", {"a": "1", "b": {"c": "2", "d": "x=9, y=8"}, "e": "3"}),
        ("a=1 b=Inner(c=2) e=3.0", {"a": "1", "b": {"c": "2"}, "e": "3.0"}),
        ("{'a': [{'b': 1}, 2], 'c': 3}", {"a": [{"b": "1"}, "2"], "c": "3"}),
        ("Usage(kind=<Kind.A: 'a'>, tier=Tier.FLEX, n=-4)", {"kind": "<Kind.A: 'a'>", "tier": "Tier.FLEX", "n": "-4"}),
        ("Usage(at=datetime(2026, 1, 2, tzinfo=UTC), n=1)", {"at": {"tzinfo": "UTC"}, "n": "1"}),
        ("{broken", {}),
        ("plain words, 1) and 2]", {}),
        ("<Usage object at 0x7f12>", {}),
        ("[1]", {}),
        ('"text"', {}),
        ("", {}),
    ],
)  # fmt: skip
def test_objects_that_were_logged_as_text(text, members):
    assert from_repr(text) == members


@pytest.mark.parametrize("text", ["(" * 100_000, "a={" * 50_000, "'" * 100_000, "[" * 100_000, '{"a":' * 10_000])
def test_no_text_whatever_raises(text):
    assert isinstance(from_repr(text), dict)
