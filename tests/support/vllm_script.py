"""What was sent to the real vLLM servers whose pages stand in `tests/pages`, step by step."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from support.tiny_model import chat, tokens

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
RESPONSES, MESSAGES = "/v1/responses", "/v1/messages"
FIRST, SECOND = "question one please", "a different second question"


@dataclass(frozen=True)
class Call:
    path: str
    prompts: list[list[int]]
    max_tokens: int = 8
    n: int = 1
    salt: str | None = None
    lookup: bool = True
    hangs_up: bool = False
    refused: bool = False
    counted: bool = True  # POST /tokenize went before it


@dataclass(frozen=True)
class Step:
    name: str
    calls: list[Call] = field(default_factory=list)
    at_once: bool = False
    reset: bool = False
    tokenize: int = 0


def words(first: int, end: int, changed: dict[int, str] | None = None) -> str:
    listed = [f"w{number:04d}" for number in range(first, end)]
    for place, word in (changed or {}).items():
        listed[place] = word
    return " ".join(listed)


def asked(system: str, user: str = FIRST, **options) -> Call:
    return Call(CHAT, [chat(("system", system), ("user", user))], **options)


def completion(*prompts: list[int], **options) -> Call:
    return Call(COMPLETIONS, list(prompts), **options)


def full(block_size: int) -> list[Step]:
    system = words(0, 180)
    base = asked(system)
    hung_up = asked(words(300, 480), max_tokens=1200, hangs_up=True)
    listed = completion(tokens(words(700, 850)), max_tokens=4)
    exact = completion([300 + number * 7 % 200 for number in range(3 * block_size)], max_tokens=1, counted=False)
    short = completion([400 + number for number in range(block_size - 1)], max_tokens=1, counted=False)
    pair = tokens(words(1100, 1200))
    equal = replace(asked(words(1400, 1580)), counted=False)
    responses = Call(RESPONSES, [chat(("user", words(1600, 1780)))], counted=False)
    messages = Call(MESSAGES, [chat(("system", words(1700, 1880)), ("user", FIRST))], counted=False)
    return [
        Step("01_cold", [base]),
        Step("02_same", [base]),
        Step("03_same_prefix_new_user", [asked(system, SECOND)]),
        Step("04_early_change", [asked(words(0, 180, {1: "w1999"}))]),
        Step("05_late_change", [asked(words(0, 180, {150: "w1999"}))]),
        Step("06_salt_A", [replace(base, salt="A")]),
        Step("07_salt_A_again", [replace(base, salt="A")]),
        Step("08_salt_B", [replace(base, salt="B")]),
        Step("09_nosalt_again", [base]),
        Step("10_stream_usage", [base]),
        Step("11_stream_no_usage", [base]),
        Step("12_stream_aborted", [hung_up]),
        Step("13_after_abort_same_prompt", [asked(words(300, 480))]),
        Step("14_abort_at_once", [asked(words(500, 680), max_tokens=1200, hangs_up=True)]),
        Step("15_completions_cold", [listed]),
        Step("16_completions_same", [listed]),
        Step("17_exact_blocks_cold", [exact]),
        Step("18_exact_blocks_same", [exact]),
        Step("19_below_one_block_twice", [short, short]),
        Step("20_n2", [asked(words(900, 1080), n=2)]),
        Step(
            "21_batch3_completions",
            [completion(pair, pair, tokens(words(1200, 1300)), max_tokens=4, counted=False)],
        ),
        Step("22_too_long_400", [asked(words(0, 900), refused=True)]),
        Step("23_prompt_logprobs", [replace(listed, max_tokens=1, lookup=False)]),
        Step("24_two_equal_at_once", [equal, equal], at_once=True),
        Step("25_responses_cold", [responses]),
        Step("26_responses_same", [responses]),
        Step("27_responses_stream", [responses]),
        Step("28_messages_cold", [messages]),
        Step("29_messages_same", [messages]),
        Step("30_messages_stream", [replace(messages, counted=True)]),
        Step("31_tokenize_only", tokenize=1),
        Step("32_idle"),
    ]


def chunked() -> list[Step]:
    system = words(0, 720)
    long = asked(system)
    turns = (("system", system), ("user", FIRST), ("assistant", "fixed answer text"), ("user", SECOND))
    left = asked(words(900, 1600), max_tokens=200, hangs_up=True)
    return [
        Step("01_long_cold", [long]),
        Step("02_long_same", [long]),
        Step("03_late_change", [asked(words(0, 720, {600: "w1999"}))]),
        Step("04_reset_prefix_cache", reset=True),
        Step("05_long_after_reset", [long]),
        Step("06_long_same_again", [long]),
        Step("07_stream_usage", [long]),
        Step("08_multi_turn_2", [Call(CHAT, [chat(*turns)])]),
        Step("09_abort_during_prefill", [left]),
        Step("10_same_as_aborted", [asked(words(900, 1600))]),
    ]


def preempt() -> list[Step]:
    def six(start: int, **options) -> list[Call]:
        return [asked(words(at, at + 40), max_tokens=600, **options) for at in range(start, start + 6 * 137, 137)]

    first = asked(words(0, 60))
    others = [asked(words(at, at + 60)) for at in range(100, 1900, 90)]
    streams = [replace(call, hangs_up=bool(number % 2)) for number, call in enumerate(six(1000))]
    return [
        Step("01_A_cold", [first]),
        Step("02_A_same", [first]),
        Step("03_fill_20_others", others),
        Step("04_A_after_eviction", [first]),
        Step("05_concurrent6_preempt", six(0, counted=False), at_once=True),
        Step("06_concurrent6_repeat", six(0, counted=False), at_once=True),
        Step("07_concurrent6_half_aborted", streams, at_once=True),
        Step("08_long_prompt", [asked(words(0, 100))]),
    ]
