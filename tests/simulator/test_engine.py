from __future__ import annotations

import dataclasses

import pytest

from prefix_cache_exporter.simulator.engine import Engine
from prefix_cache_exporter.simulator.requests import Prompt, Request
from prefix_cache_exporter.simulator.rules import Rules
from prefix_cache_exporter.simulator.terms import Settings, TooLongError
from prefix_cache_exporter.tokens.blocks import Extras

NEWEST = Rules.of("0.32.0")
SMALL = Settings(block_size=4, blocks=9, max_model_len=64, max_batched_tokens=16, max_running=4)  # 8 blocks of 4


def engine(rules: Rules = NEWEST, **changed) -> Engine:
    return Engine(dataclasses.replace(SMALL, **changed), rules)


def request(first: int, length: int, max_tokens: int = 1, extras: Extras = Extras()) -> Request:  # noqa: B008  # frozen
    return Request(f"{first}", Prompt.of(range(first, first + length), 4, extras), max_tokens)


def sent(to: Engine, *requests: Request) -> Engine:
    for asked in requests:
        to.submit(asked)
    to.run()
    return to


def test_a_repeated_prompt_computes_its_last_token_again():
    one = sent(engine(), request(0, 12))
    assert (one.counts.lookup, one.counts.lookup_hit) == (12, 0)

    sent(one, request(0, 12))
    assert (one.counts.lookup, one.counts.lookup_hit) == (24, 8)  # two of three blocks
    assert (one.counts.prompt, one.counts.cached, one.counts.finished) == (24, 8, 2)


@pytest.mark.parametrize("extras", [Extras(salt="b"), Extras(lora="b")])
def test_salt_and_adapter_keep_caches_apart(extras):
    one = sent(engine(), request(0, 13), request(0, 13, extras=extras), request(0, 13, extras=extras))

    assert one.counts.cached == 12


def test_generated_tokens_fill_blocks_that_equal_requests_find_again():
    one = sent(engine(), request(0, 6, max_tokens=11))  # 16 tokens are computed: four blocks

    assert len(one.pool.find(_hashes(one, request(0, 6, max_tokens=11), 16), 4)) == 4


def _hashes(one: Engine, asked: Request, tokens: int) -> list:
    asked.generated = tokens - asked.prompt.length
    asked.hash_generated(one.settings.block_size)
    return asked.hashes


def test_other_sampling_generates_other_tokens():
    plain, other = request(0, 6), request(0, 6)
    other.sampling = 1

    assert _hashes(engine(), plain, 16)[-1] != _hashes(engine(), other, 16)[-1]


def test_long_prompts_are_computed_in_chunks():
    one = engine()
    long = request(0, 30)
    one.submit(long)

    chunks = []
    while one.busy:
        chunks.append(one.step().tokens[long])

    assert chunks == [16, 14]
    assert (one.counts.prompt, one.counts.steps) == (30, 1)  # the first chunk gave no output


def test_requests_wait_where_the_batch_is_full():
    one = engine(max_running=1)
    first, second = request(0, 4, max_tokens=2), request(100, 4, max_tokens=2)
    one.submit(first)
    one.submit(second)

    one.step()

    assert (one.running, list(one.waiting)) == ([first], [second])
    one.run()
    assert one.counts.finished == 2


def test_the_youngest_is_preempted_where_blocks_run_out():
    one = engine(blocks=5)  # four blocks of 4 tokens
    elder, younger = request(0, 6, max_tokens=6), request(100, 6, max_tokens=6)

    sent(one, elder, younger)

    assert (elder.preemptions, younger.preemptions, one.counts.preemptions) == (0, 1, 1)
    assert one.counts.generated == 12
    assert one.counts.lookup == 12  # what is looked up again after a preemption is not counted
    assert one.counts.prompt == 12


def test_a_request_alone_may_preempt_itself():
    one = engine(blocks=3, max_model_len=8)  # two blocks
    alone = request(0, 7, max_tokens=20)

    sent(one, alone)

    assert alone.generated == 1  # the sequence is as long as the model allows
    assert one.pool.free == 2


def test_a_victim_can_be_the_request_that_needs_the_block():
    one = engine(blocks=4)  # three blocks
    elder, younger = request(0, 7, max_tokens=5), request(100, 4, max_tokens=5)

    sent(one, elder, younger)

    assert (elder.preemptions, younger.preemptions) == (0, 1)
    assert one.counts.finished == 2


@pytest.mark.parametrize(("rule", "admitted"), [(True, 1), (False, 2)])
def test_whether_the_whole_prompt_must_fit(rule, admitted):
    rules = dataclasses.replace(NEWEST, whole_prompt_must_fit=rule)
    one = engine(rules, blocks=8, max_batched_tokens=20)  # seven blocks
    one.submit(request(0, 12, max_tokens=2))
    one.submit(request(100, 20, max_tokens=2))  # five blocks, of which the first step computes two

    one.step()

    assert len(one.running) == admitted


@pytest.mark.parametrize(("counted", "lookups"), [("lookup", 12 + 3 * 12), ("admission", 12 + 12)])
def test_whether_waiting_is_counted_as_looking_up(counted, lookups):
    one = engine(dataclasses.replace(NEWEST, lookups_counted=counted), blocks=5)
    one.submit(request(0, 12, max_tokens=3))
    one.step()
    one.submit(request(100, 12))

    one.run()

    assert one.counts.lookup == lookups


def test_requests_without_lookup_count_in_prompt_tokens_only():
    one = sent(engine(), request(0, 12))
    skipping = request(0, 12)
    skipping.lookup = False

    sent(one, skipping)

    assert (one.counts.prompt, one.counts.lookup, one.counts.cached) == (24, 12, 0)


def test_a_client_that_hangs_up_while_its_prompt_is_computed_counts_in_lookups_only():
    one = engine()
    left = request(0, 12, max_tokens=5)
    one.submit(left)

    plan = one.schedule()
    one.abort(left)
    one.complete(plan)
    one.step()

    assert (one.counts.lookup, one.counts.prompt, one.counts.generated, one.counts.finished) == (12, 0, 0, 0)
    assert not one.busy
    assert one.pool.free == 8


def test_a_client_that_hangs_up_in_its_last_step_is_not_told():
    one = engine()
    left = request(0, 12)
    one.submit(left)

    plan = one.schedule()
    one.abort(left)

    assert one.complete(plan) == [left]
    one.step()
    assert one.counts.finished == 0


def test_a_client_may_hang_up_while_it_waits():
    one = engine(max_running=1)
    first, second = request(0, 4, max_tokens=3), request(100, 4)
    one.submit(first)
    one.submit(second)
    one.step()

    one.abort(second)
    one.run()

    assert (one.counts.finished, one.counts.lookup) == (1, 4)


def test_a_reset_is_refused_while_requests_run():
    one = engine()
    one.submit(request(0, 12, max_tokens=3))
    one.step()
    assert not one.reset_cache()

    one.run()
    assert one.reset_cache()
    sent(one, request(0, 12))
    assert one.counts.cached == 0


def test_a_prompt_that_leaves_no_room_is_refused():
    with pytest.raises(TooLongError, match="prompt: got 64 tokens, expected at most 63"):
        engine().submit(request(0, 64))
