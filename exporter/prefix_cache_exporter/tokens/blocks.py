"""The block rules of prefix caching: what a server can share is decided here, not by counting equal words.

A cached unit is a full block of tokens. Its hash is chained from the block before it and covers the tokens and whatever
else changes what the model computes, so equal blocks after different beginnings are different blocks
(https://docs.vllm.ai/en/v0.12.0/design/prefix_caching/). Hash values are this project's own: only their equality means
anything, and a server's own values differ from run to run.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from hashlib import blake2b
from itertools import takewhile
from operator import eq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_DIGEST_BYTES = 16
ROOT = bytes(_DIGEST_BYTES)
"""The parent of a first block."""


@dataclass(frozen=True, slots=True)
class Media:
    """An image, sound or other input that stands in the prompt as placeholder tokens.

    Attributes:
        offset: index of its first token in the prompt.
        length: placeholder tokens.
        identity: digest of the content; placeholder tokens look alike.
    """

    offset: int
    length: int
    identity: str


@dataclass(frozen=True, slots=True)
class Extras:
    """What is hashed beside the tokens.

    Attributes:
        salt: `cache_salt` of the request. It is hashed into the first block, and the chain carries it to all others.
        lora: name of the adapter that computes the request; hashed into every block.
        media: inputs behind placeholder tokens; hashed into the blocks that they touch.
    """

    salt: str | None = None
    lora: str | None = None
    media: tuple[Media, ...] = ()

    def of_block(self, index: int, block_size: int) -> bytes:
        """The bytes that block `index` adds to its hash; empty for most blocks of most requests."""
        parts = []
        if self.lora is not None:
            parts.append(("lora", self.lora))
        if self.salt is not None and index == 0:
            parts.append(("salt", self.salt))
        start, end = index * block_size, (index + 1) * block_size
        parts += [
            ("media", media.identity)
            for media in self.media
            if media.offset < end and media.offset + media.length > start
        ]
        return repr(parts).encode() if parts else b""


PLAIN = Extras()
"""A request without salt, adapter or media."""


def block_hash(parent: bytes, tokens: Sequence[int], extras: bytes = b"") -> bytes:
    """The hash of one full block.

    Args:
        parent: hash of the block before it, `ROOT` for the first.
        tokens: token ids, each from 0 to 2**32 - 1.
        extras: what `Extras.of_block` gives.
    """
    return blake2b(array("I", tokens).tobytes() + extras, digest_size=_DIGEST_BYTES, key=parent).digest()


def chain(
    tokens: Sequence[int], block_size: int, extras: Extras = PLAIN, *, parent: bytes = ROOT, first: int = 0
) -> list[bytes]:
    """The hashes of the full blocks of a token sequence; a part-filled last block has none.

    Args:
        tokens: token ids, each from 0 to 2**32 - 1.
        block_size: tokens in a block.
        extras: salt, adapter and media of the request.
        parent: hash of the block before `tokens`, where they continue a sequence.
        first: index of the first block of `tokens` within that sequence.
    """
    return list(_chain(tokens, block_size, extras, parent, first))


def _chain(tokens: Sequence[int], block_size: int, extras: Extras, parent: bytes, first: int) -> Iterator[bytes]:
    # One conversion for all blocks: per block it would cost more than the hashing.
    content = array("I", tokens)
    width = block_size * content.itemsize
    view = memoryview(content).cast("B")
    plain = extras == PLAIN
    for index in range(len(content) // block_size):
        digest = blake2b(view[index * width : (index + 1) * width], digest_size=_DIGEST_BYTES, key=parent)
        if not plain:
            digest.update(extras.of_block(first + index, block_size))
        parent = digest.digest()
        yield parent


def whole_blocks(tokens: int, block_size: int) -> int:
    """Tokens of the full blocks in so many tokens: 70 tokens in blocks of 16 are 64."""
    return tokens // block_size * block_size


def reusable_tokens(shared: int, total: int, block_size: int) -> int:
    """Tokens of a prompt that a warm cache saves, where its first `shared` tokens have been computed before.

    Whole blocks only, and never the last token of the prompt: the first generated token is drawn from its output.
    A prompt repeated whole, `shared == total`, therefore saves `floor((total - 1) / block_size) * block_size`.
    """
    return whole_blocks(min(shared, total - 1), block_size)


def shared_tokens(one: Sequence[int], other: Sequence[int]) -> int:
    """How many leading tokens two sequences share."""
    return sum(1 for _ in takewhile(bool, map(eq, one, other)))
