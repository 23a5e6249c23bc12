"""What is sent to the server, step by step: the scripts that the recordings in `tests/pages` were made with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from e2e_vllm.client import Send
from support.tiny_model import chat
from support.vllm_script import CHAT, COMPLETIONS, FIRST, MESSAGES, RESPONSES, SECOND, words


@dataclass(frozen=True)
class Step:
    name: str
    sends: list[Send] = field(default_factory=list)
    note: str = ""
    at_once: bool = False


@dataclass(frozen=True)
class Run:
    """One server: its options beyond the usual, and what it is sent."""

    suffix: str
    options: list[str]
    script: Any  # block size -> steps

    def steps(self, block_size: int) -> list[Step]:
        steps: list[Step] = self.script(block_size)
        return steps


def asked(system: str, user: str = FIRST, **options: Any) -> Send:
    turns = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    return Send(CHAT, {"model": "tiny", "messages": turns, "max_tokens": 8, "temperature": 0} | options)


def streamed(send: Send, hangs_up: int | None = None, *, usage: bool = True, **options: Any) -> Send:
    included = {"stream_options": {"include_usage": True}} if usage else {}
    return Send(send.path, send.body | {"stream": True} | included | options, hangs_up)


def completion(prompt: Any, max_tokens: int = 4, **options: Any) -> Send:
    return Send(COMPLETIONS, {"model": "tiny", "prompt": prompt, "max_tokens": max_tokens, "temperature": 0} | options)


def full(block_size: int) -> list[Step]:
    system = words(0, 180)
    base = asked(system)
    long = {"max_tokens": 1200, "ignore_eos": True}
    listed = completion(words(700, 850))
    exact = completion([300 + number * 7 % 200 for number in range(3 * block_size)], 1)
    short = completion([400 + number for number in range(block_size - 1)], 1)
    pair = words(1100, 1200)
    response = Send(RESPONSES, {"model": "tiny", "input": words(1600, 1780), "max_output_tokens": 8, "temperature": 0})
    message = Send(
        MESSAGES,
        {
            "model": "tiny",
            "max_tokens": 8,
            "system": words(1700, 1880),
            "messages": [{"role": "user", "content": FIRST}],
        },
    )
    return [
        Step("cold", [base], "first request"),
        Step("same", [base], "identical request"),
        Step("same_prefix_new_user", [asked(system, SECOND)], "same system prompt, other user text"),
        Step("early_change", [asked(words(0, 180, {1: "w1999"}))], "second word of system prompt changed"),
        Step("late_change", [asked(words(0, 180, {150: "w1999"}))], "word 150 of 180 changed"),
        Step("salt_A", [base.but(cache_salt="A")], "same prompt with cache_salt A"),
        Step("salt_A_again", [base.but(cache_salt="A")]),
        Step("salt_B", [base.but(cache_salt="B")]),
        Step("nosalt_again", [base]),
        Step("stream_usage", [streamed(base)]),
        Step("stream_no_usage", [streamed(base, usage=False)]),
        Step(
            "stream_aborted",
            [streamed(asked(words(300, 480)), 4, **long)],
            "new prompt, socket closed after 4 SSE lines",
        ),
        Step("after_abort_same_prompt", [asked(words(300, 480))], "the aborted prompt again"),
        Step(
            "abort_at_once",
            [streamed(asked(words(500, 680)), 0, usage=False, **long)],
            "socket closed 20 ms after sending",
        ),
        Step("completions_cold", [listed]),
        Step("completions_same", [listed]),
        Step("exact_blocks_cold", [exact], f"prompt of exactly 3*{block_size} token ids"),
        Step("exact_blocks_same", [exact], "identical; all 3 blocks are cached"),
        Step("below_one_block_twice", [short, short], f"{block_size - 1} tokens twice"),
        Step("n2", [asked(words(900, 1080), n=2, temperature=1.0, seed=1)], "n=2, new prompt"),
        Step("batch3_completions", [completion([pair, pair, words(1200, 1300)])], "list of 3 prompts, two equal"),
        Step("too_long_400", [asked(words(0, 900))], "rejected: over max_model_len"),
        Step(
            "prompt_logprobs",
            [completion(words(700, 850), 1, prompt_logprobs=1)],
            "prompt already cached; prompt_logprobs asked for",
        ),
        Step(
            "two_equal_at_once", [asked(words(1400, 1580))] * 2, "two equal new prompts at the same time", at_once=True
        ),
        Step("responses_cold", [response]),
        Step("responses_same", [response]),
        Step("responses_stream", [streamed(response, usage=False)]),
        Step("messages_cold", [message]),
        Step("messages_same", [message]),
        Step("messages_stream", [streamed(message, usage=False)]),
        Step("tokenize_only", [Send("/tokenize", {"model": "tiny", "prompt": system})], "no generation"),
        Step("idle", [], "nothing sent"),
    ]


def chunked(_: int) -> list[Step]:
    system = words(0, 720)
    long = asked(system)
    turns = [*long.body["messages"], {"role": "assistant", "content": "fixed answer text"}]
    turns += [{"role": "user", "content": SECOND}]
    left = streamed(asked(words(900, 1600)), 0, usage=False, max_tokens=200, ignore_eos=True)
    return [
        Step("long_cold", [long], "about 1800 tokens: chunked prefill"),
        Step("long_same", [long]),
        Step("late_change", [asked(words(0, 720, {600: "w1999"}))], "word 600 of 720 changed"),
        Step("reset_prefix_cache", [Send("/reset_prefix_cache")], "dev-mode endpoint"),
        Step("long_after_reset", [long]),
        Step("long_same_again", [long]),
        Step("stream_usage", [streamed(long)]),
        Step("multi_turn_2", [long.but(messages=turns)], "appended turn"),
        Step("abort_during_prefill", [left], "socket closed 20 ms after sending a long new prompt"),
        Step("same_as_aborted", [asked(words(900, 1600))]),
    ]


def preempt(_: int) -> list[Step]:
    def six(start: int) -> list[Send]:
        return [asked(words(at, at + 40), max_tokens=600, ignore_eos=True) for at in range(start, start + 6 * 137, 137)]

    first = asked(words(0, 60))
    others = [asked(words(at, at + 60)) for at in range(100, 1900, 90)]
    halves = [streamed(send, 30 if number % 2 else None) for number, send in enumerate(six(1000))]
    return [
        Step("A_cold", [first]),
        Step("A_same", [first]),
        Step("fill_20_others", others, "20 distinct prompts to evict A"),
        Step("A_after_eviction", [first]),
        Step("concurrent6_preempt", six(0), "6 distinct prompts, KV cache too small for all", at_once=True),
        Step("concurrent6_repeat", six(0), "the same six again", at_once=True),
        Step("concurrent6_half_aborted", halves, "six streams, odd ones closed after 30 SSE lines", at_once=True),
        Step("long_prompt", [asked(words(0, 100))]),
    ]


RUNS = {
    "full": Run("", ["--max-model-len", "2048", "--num-gpu-blocks-override", "512"], full),
    "chunked": Run(
        "-block32-chunked",
        [
            *("--max-model-len", "2048", "--num-gpu-blocks-override", "1024"),
            *("--block-size", "32", "--max-num-batched-tokens", "256", "--enable-chunked-prefill"),
        ],
        chunked,
    ),
    "preempt": Run("-preempt", ["--max-model-len", "1024", "--num-gpu-blocks-override", "12"], preempt),
}


def shared_prefix(block_size: int) -> dict[str, int]:
    """How many tokens the changed prompts of `full` share with its first."""

    def prompt(changed: dict[int, str] | None = None, user: str = FIRST) -> list[int]:
        return chat(("system", words(0, 180, changed)), ("user", user))

    base = prompt()
    others = {"early": prompt({1: "w1999"}), "late": prompt({150: "w1999"}), "newuser": prompt(None, SECOND)}
    shared = {
        name: next(n for n, (x, y) in enumerate(zip(base, other, strict=False)) if x != y)
        for name, other in others.items()
    }
    return {
        "base": len(base),
        "block_size": block_size,
        **{f"{name}_lcp": count for name, count in shared.items()},
        **{f"{name}_floor": count // block_size * block_size for name, count in shared.items()},
        "same_floor_n_minus_1": (len(base) - 1) // block_size * block_size,
    }
