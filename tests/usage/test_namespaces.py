from __future__ import annotations

from collections import Counter

import pytest

from prefix_cache_exporter.usage.namespaces import Protector, is_retry


def test_allowed_names_stand_and_others_are_one():
    protector = Protector(allow=["gold", "silver"])
    assert protector({"tenant": "gold"}) == {"namespace": "gold"}
    assert protector({"namespace": "silver", "tenant": "acme"}) == {"namespace": "silver"}
    assert protector({"tenant": "acme"}) == {"namespace": "other"}
    assert protector({"task": "chat"}) == {"task": "chat"}


def test_tenants_fall_into_buckets_by_a_key():
    buckets = Protector(buckets=16, key=b"secret")
    found = Counter(buckets({"tenant": f"t{number}"})["namespace"] for number in range(16_000))
    assert sorted(found) == [f"bucket-{number:02}" for number in range(16)]
    assert max(found.values()) < 1200
    other = Protector(buckets=16, key=b"another")
    assert any(buckets({"tenant": f"t{n}"}) != other({"tenant": f"t{n}"}) for n in range(10))
    assert Protector(buckets=16, key=b"secret", allow=["vip"])({"tenant": "vip"}) == {"namespace": "vip"}
    assert Protector(buckets=1)({"namespace": "x"}) == {"namespace": "bucket-0"}
    assert buckets({"tenant": "\ud83d"})["namespace"].startswith("bucket-")


def test_nothing_of_a_tenant_is_kept_where_nothing_is_configured():
    assert Protector()({"tenant": "acme", "namespace": "acme"}) == {}


def test_only_what_can_be_a_label_or_a_number_is_kept():
    kept = Protector()(
        {
            "template": "t",
            "template_revision": "r",
            "task": "a",
            "eligible_tokens": "1024.0",
            "leading_fingerprint": "the first words of somebody's prompt",
            "attempt": "3",
            "anything": "else",
        }
    )
    fingerprint = kept.pop("leading_fingerprint")
    assert kept == {
        "template": "t",
        "template_revision": "r",
        "task": "a",
        "eligible_tokens": "1024",
        "attempt": "retry",
    }
    assert len(bytes.fromhex(fingerprint)) == 8
    assert Protector()({"eligible_tokens": "my secret"}) == {"eligible_tokens": "?"}


@pytest.mark.parametrize(
    ("text", "retry"),
    [("0", False), ("1", False), ("01", False), ("2", True), ("true", True), ("Retry", True), ("false", False)],
)
def test_attempts(text, retry):
    assert is_retry(text) is retry
    assert Protector()({"attempt": text}) == {"attempt": "retry" if retry else "first"}


def test_every_byte_of_a_long_key_counts():
    # the hash itself takes 64 bytes; what was behind them once counted for nothing
    tenants = [f"tenant-{number}" for number in range(50)]

    def buckets(key):
        return [Protector(buckets=1000, key=key).namespace(None, tenant) for tenant in tenants]

    assert buckets(b"a" * 70 + b"b") != buckets(b"a" * 70 + b"c")
    assert buckets(b"a" * 64) == buckets(b"a" * 64) != buckets(b"a" * 65)
