from __future__ import annotations

import pytest

from prefix_cache_exporter.tokens.blocks import (
    PLAIN,
    ROOT,
    Extras,
    Media,
    block_hash,
    chain,
    reusable_tokens,
    shared_tokens,
    whole_blocks,
)

PROMPT = list(range(100, 120))  # 20 tokens: five blocks of 4


def test_only_full_blocks_have_a_hash():
    assert len(chain(PROMPT, 4)) == 5
    assert len(chain(PROMPT[:19], 4)) == 4
    assert chain(PROMPT[:3], 4) == []
    assert chain([], 4) == []


def test_equal_beginnings_have_equal_hashes_up_to_the_first_difference():
    changed = [*PROMPT[:9], 7, *PROMPT[10:]]  # in the third block

    one, other = chain(PROMPT, 4), chain(changed, 4)

    assert one[:2] == other[:2]
    assert not set(one[2:]) & set(other[2:])


def test_a_block_is_hashed_with_what_went_before_it():
    again = [*PROMPT[4:8], *PROMPT[4:8]]  # equal tokens, first and second block

    first, second = chain(again, 4)

    assert first != second


def test_a_token_put_in_front_leaves_nothing_to_share():
    assert not set(chain(PROMPT, 4)) & set(chain([1, *PROMPT], 4))


def test_a_chain_can_be_continued():
    start = chain(PROMPT[:8], 4)

    assert start + chain(PROMPT[8:], 4, parent=start[-1], first=2) == chain(PROMPT, 4)
    assert block_hash(ROOT, PROMPT[:4]) == start[0]
    assert block_hash(start[0], PROMPT[4:8]) == start[1]


@pytest.mark.parametrize(
    ("extras", "block"),
    [
        (Extras(salt="tenant-a"), 0),
        (Extras(salt=""), 0),
        (Extras(lora="adapter"), 0),
        (Extras(media=(Media(0, 2, "cat"),)), 0),
        (Extras(media=(Media(9, 2, "cat"),)), 2),
        (Extras(media=(Media(9, 5, "cat"),)), 2),
    ],
    ids=["salt", "empty salt", "lora", "image in front", "image in the third block", "image over two blocks"],
)
def test_extras_part_the_chain_where_they_stand(extras, block):
    plain, extra = chain(PROMPT, 4), chain(PROMPT, 4, extras)

    assert plain[:block] == extra[:block]
    assert not set(plain[block:]) & set(extra[block:])


def test_a_salt_is_hashed_once_and_an_adapter_into_every_block():
    assert [Extras(salt="s").of_block(index, 4) != b"" for index in range(3)] == [True, False, False]
    assert [Extras(lora="l").of_block(index, 4) != b"" for index in range(3)] == [True, True, True]
    assert [PLAIN.of_block(index, 4) for index in range(3)] == [b"", b"", b""]


def test_different_extras_do_not_look_alike():
    several = [Extras(), Extras(salt="x"), Extras(lora="x"), Extras(media=(Media(0, 1, "x"),)), Extras("x", "x")]

    assert len({chain(PROMPT, 4, extras)[0] for extras in several}) == len(several)


def test_continued_extras_know_their_block():
    image = Extras(salt="s", media=(Media(9, 2, "cat"),))
    start = chain(PROMPT[:8], 4, image)

    assert start + chain(PROMPT[8:], 4, image, parent=start[-1], first=2) == chain(PROMPT, 4, image)


@pytest.mark.parametrize(
    ("shared", "total", "block_size", "saved"),
    [
        (70, 200, 16, 64),  # whole blocks only
        (384, 384, 128, 256),  # a prompt of exactly three blocks repeated: its last token is computed again
        (385, 385, 128, 384),
        (474, 474, 128, 384),
        (15, 200, 16, 0),
        (0, 200, 16, 0),
        (200, 150, 16, 144),  # more shared than there is
    ],
)
def test_what_a_warm_cache_saves(shared, total, block_size, saved):
    assert reusable_tokens(shared, total, block_size) == saved


def test_whole_blocks():
    assert [whole_blocks(tokens, 16) for tokens in (0, 15, 16, 70)] == [0, 0, 16, 64]


def test_shared_tokens_are_counted_from_the_front():
    assert shared_tokens([1, 2, 3, 4], [1, 2, 9, 4]) == 2
    assert shared_tokens([1, 2], [1, 2, 3]) == 2
    assert shared_tokens([], [1]) == 0


@pytest.mark.parametrize("token", [-1, 1 << 32])
def test_what_is_no_token_id_is_refused(token):
    with pytest.raises(OverflowError):
        chain([token], 1)
