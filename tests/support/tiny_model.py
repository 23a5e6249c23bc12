"""The tokenizer and chat template of the tiny model that the recordings in `tests/pages` were made with."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

SPECIAL = ("<|pad|>", "<|bos|>", "<|eos|>", "<|im_start|>", "<|im_end|>")


@cache
def tokenizer() -> Tokenizer:
    merges = [
        tuple(line.split(" ")) for line in Path(__file__).with_name("tiny_merges.txt").read_text("utf-8").splitlines()
    ]
    words = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet()), *("".join(pair) for pair in merges)]
    vocabulary = {word: number for number, word in enumerate(dict.fromkeys(words))}
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.add_special_tokens([AddedToken(word, special=True) for word in SPECIAL])
    return made


def tokens(text: str) -> list[int]:
    return tokenizer().encode(text).ids


def chat(*messages: tuple[str, str]) -> list[int]:
    turns = "".join(f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in messages)
    return tokens(f"{turns}<|im_start|>assistant\n")
