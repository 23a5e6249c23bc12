"""What a kill must not lose of requests that are merging. It holds no id, only hashes."""

from __future__ import annotations

import msgspec

from .pending import Open
from .scopes import Scope  # noqa: TC001  # msgspec reads annotations


class State(msgspec.Struct):
    """Open requests by key, files by name, and how many streams without id there were."""

    opened: dict[bytes, Open]
    scopes: dict[str, Scope]
    serial: int


def encode(state: State) -> bytes:
    """The state as bytes, without raw ids: a record that was open over a restart has none."""
    held = {key: Open(msgspec.structs.replace(one.fragment, id=None), one.touched) for key, one in state.opened.items()}
    return msgspec.msgpack.encode(State(held, state.scopes, state.serial))


def decode(stored: bytes) -> State:
    """The state that was encoded.

    Raises:
        msgspec.DecodeError: where it is none.
    """
    return msgspec.msgpack.decode(stored, type=State)
