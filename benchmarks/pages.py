"""Large pages made of a recorded one: its engine repeated under other ranks and models, its counters moving on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

RECORDED = Path(__file__).resolve().parents[1] / "tests" / "pages" / "0.32.0" / "24_two_equal_at_once.prom"
VERSION = "0.32.0"
TEXT = "text/plain; version=0.0.4; charset=utf-8"
_MODEL = "example/Meta-Llama-3.1-8B-Instruct"
_ENGINE = re.compile(r'engine="0"')
_NAMED = re.compile(r'model_name="tiny"')
_MOVING = re.compile(r"^(vllm:\S*(?:_total|_bucket|_count|_sum)(?:\{.*\})?) (\S+)$")


@dataclass(frozen=True, slots=True)
class Made:
    """A page.

    Attributes:
        body: as a server would send it.
        samples: how many lines hold a value.
    """

    body: bytes
    samples: int


def page(engines: int, models: int = 1, step: int = 0) -> Made:
    """A page of so many engines and models a rank.

    Args:
        engines: data-parallel ranks.
        models: series of each rank, told apart by `model_name`.
        step: added to every counter, so that pages of rising steps are what successive polls see.
    """
    lines: list[str] = []
    block: list[str] = []
    for line in RECORDED.read_text("utf-8").splitlines():
        if line.startswith("#"):
            lines += _repeated(block, engines, models)
            block = []
            lines.append(line)
        else:
            block.append(_moved(line, step))
    lines += _repeated(block, engines, models)
    samples = sum(not line.startswith("#") for line in lines)
    return Made("\n".join([*lines, ""]).encode(), samples)


def sized(samples: int, step: int = 0) -> Made:
    """A page of about so many samples."""
    engines = 1
    while page(engines + 1).samples <= samples:
        engines += 1
    return page(engines, step=step)


def _repeated(lines: list[str], engines: int, models: int) -> list[str]:
    if not any(_ENGINE.search(line) for line in lines):
        return lines
    found = []
    for engine in range(engines):
        for model in range(models):
            name = _MODEL if model == 0 else f"{_MODEL}-lora-{model}"
            found += [_NAMED.sub(f'model_name="{name}"', _ENGINE.sub(f'engine="{engine}"', line)) for line in lines]
    # An info series names no model: it stands once a rank.
    return list(dict.fromkeys(found))


def _moved(line: str, step: int) -> str:
    match = _MOVING.match(line)
    return f"{match[1]} {float(match[2]) + step}" if match and step else line
