"""Sums over a file so far, turned into one request's numbers.

A file that repeats another's history (a fork or a resumed session) repeats its sums, so they make the key:
https://github.com/ccusage/ccusage/issues/1288. Only a session's first request could look the same by chance.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from prefix_cache_exporter.usage.normaliser import KEY_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prefix_cache_exporter.usage.record import Fragment

    from .scopes import Scope

_CUMULATIVE: Final = ("input", "output", "reasoning", "total", "read", "write")


def increase(fragment: Fragment, scope: Scope) -> bool:
    """Turns a line's sums into what they grew by since the line before it; whether they grew.

    Args:
        fragment: changed in place, its key too; left as it is where it has no sums.
        scope: of its file, which keeps the sums.
    """
    sums = {name: count for name in _CUMULATIVE if (count := getattr(fragment, name)) is not None}
    if not sums:
        return True
    before, last = scope.sums, fragment.last
    if sums == before:
        return False
    scope.sums = sums
    anew = before is None or any(count < before.get(name, 0) for name, count in sums.items())
    if anew and last:
        grown = last  # what came before it is in another file, or the sums began again
    else:
        grown = {name: count - (0 if anew or before is None else before.get(name, 0)) for name, count in sums.items()}
    for name in _CUMULATIVE:
        setattr(fragment, name, grown.get(name))
    fragment.key = _key_of_sums(sums, None if anew else before, scope.session if anew else None)
    return True


def _key_of_sums(sums: Mapping[str, int], before: Mapping[str, int] | None, session: str | None) -> bytes:
    text = repr((sorted(sums.items()), sorted((before or {}).items()), session))
    return blake2b(text.encode(), digest_size=KEY_BYTES).digest()
