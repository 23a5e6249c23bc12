"""Trust-group labels without tenants: an allow-listed name, or a keyed hash of the tenant into a few buckets."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from prefix_cache_exporter.labels import OTHER

if TYPE_CHECKING:
    from collections.abc import Collection

KEY_LIMIT = 64
"""Bytes of a key that blake2b takes."""
_PLAIN = ("template", "template_revision", "task")
_LONGEST_NUMBER = 20
_RETRY = frozenset({"retry", "true"})


class Protector:
    """What is kept of the fields that a source's configuration asks for, before anything stores them.

    Tenants become a bounded `namespace`, fingerprints a hash; what should be a number is one or is said to be none.

    Args:
        allow: names that may stand as they are; others become `other`.
        buckets: into how many buckets other tenants are hashed instead; None for none.
        key: keys the hashes, so that nobody without it can tell a tenant's bucket.
    """

    def __init__(self, *, allow: Collection[str] = (), buckets: int | None = None, key: bytes = b"") -> None:
        self._allow = frozenset(allow)
        self._key = fitted(key)
        self._names = bucket_names(buckets or 0)

    def __call__(self, fields: dict[str, str]) -> dict[str, str]:
        """The fields as they may be kept."""
        kept = {name: fields[name] for name in _PLAIN if name in fields}
        namespace = self.namespace(fields.get("namespace"), fields.get("tenant"))
        if namespace:
            kept["namespace"] = namespace
        if (eligible := fields.get("eligible_tokens")) is not None:
            number = eligible.strip().removesuffix(".0")
            kept["eligible_tokens"] = number if number.isdecimal() and len(number) <= _LONGEST_NUMBER else "?"
        if (fingerprint := fields.get("leading_fingerprint")) is not None:
            kept["leading_fingerprint"] = self._hash(fingerprint).hex()
        if (attempt := fields.get("attempt")) is not None:
            kept["attempt"] = "retry" if is_retry(attempt) else "first"
        return kept

    def namespace(self, name: str | None, tenant: str | None) -> str:
        """The label of a request; empty where nothing is configured or nothing is known."""
        for candidate in (name, tenant):
            if candidate is not None and candidate in self._allow:
                return candidate
        known = tenant if tenant is not None else name
        if known is None:
            return ""
        if self._names:
            return self._names[int.from_bytes(self._hash(known), "big") % len(self._names)]
        return OTHER if self._allow else ""

    def _hash(self, text: str) -> bytes:
        return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, key=self._key).digest()


def bucket_names(buckets: int) -> tuple[str, ...]:
    """The names of so many buckets, all of one length."""
    width = len(str(max(buckets - 1, 0)))
    return tuple([f"bucket-{bucket:0{width}}" for bucket in range(buckets)])


def fitted(key: bytes) -> bytes:
    """A key of a length that the hash takes; of a longer one every byte counts, as in HMAC."""
    return key if len(key) <= KEY_LIMIT else blake2b(key, digest_size=KEY_LIMIT).digest()


def is_retry(attempt: str) -> bool:
    """Whether a field says that an attempt was not the first: a number above 1, `retry` or `true`.

    Sources that count retries from 0 are configured with the number of the attempt instead.
    """
    text = attempt.strip().casefold()
    return text in _RETRY or (text.isdecimal() and text.lstrip("0") not in ("", "1"))
