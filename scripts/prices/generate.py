# ruff: noqa: INP001  # a script, not part of a package
"""Writes metric_maps/prices/*.yaml from the genai-prices package and gaps.yaml; `--check` only says what has drifted.

The package keeps prices of many kinds; a usage record has text tokens in, read, written and out, so only models priced
that way are taken. One line per price keeps the books readable in a diff.
"""

from __future__ import annotations

import re
import sys
from decimal import Decimal
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from genai_prices import data
from genai_prices import types as genai

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ROOT = Path(__file__).resolve().parents[2]
BOOKS = ROOT / "metric_maps" / "prices"
GAPS = Path(__file__).with_name("gaps.yaml")
DATE = {"0.2.3": "2026-11-10"}
"""When a version of the package came out: the date of every price taken from it."""

PROVIDERS = {
    "anthropic": "anthropic", "aws": "bedrock", "azure": "azure", "cohere": "cohere", "databricks": "databricks",
    "deepseek": "deepseek", "fireworks": "fireworks", "google": "google", "groq": "groq", "minimax": "minimax",
    "mistral": "mistral", "moonshotai": "moonshot", "openai": "openai", "openrouter": "openrouter",
    "perplexity": "perplexity", "together": "together", "x-ai": "xai", "zai": "zai",
}  # fmt: skip
"""The package's providers whose usage formats we read, and what we call them."""
ONLY_CACHED = {"openrouter", "together", "fireworks", "bedrock"}
"""Catalogues of hundreds of models: only those with a cached price say anything about caching."""

# Tokens of these are not plain text, and a usage record does not tell them apart.
NOT_TEXT = re.compile(
    r"audio|realtime|transcribe|tts|image|embed|live|sonic|voxtral|whisper|:free|rerank|ocr|banana|omni|search"
)
WRITE_TTL = {"openai": ("30m",), "azure": ("30m",)}
"""The time to live of the package's plain write price; elsewhere it is five minutes."""
RESOLD = re.compile(r"(^|[./])openai[./]")
"""OpenAI's models at others, who may call the same write by OpenAI's time to live or by their own."""
KEYS = {"input_mtok": "input", "output_mtok": "output", "cache_read_mtok": "read", "cache_write_mtok": "write",
        "cache_write_1h_mtok": "1h"}  # fmt: skip


def main(arguments: list[str]) -> int:
    """Writes the books, or with --check compares them; 1 when something differs."""
    texts = books()
    stale = [name for name, text in texts.items() if not _same(BOOKS / name, text)]
    foreign = sorted(path.name for path in BOOKS.glob("*") if path.name not in texts)
    if "--check" not in arguments:
        BOOKS.mkdir(exist_ok=True)
        for name in stale:
            (BOOKS / name).write_text(texts[name])
        stale = []
    for name in (*stale, *foreign):
        print(f"prices: {name} is not what generate.py writes", file=sys.stderr)  # noqa: T201  # a command line prints
    return 1 if stale or foreign else 0


def books() -> dict[str, str]:
    """The text of every book by file name."""
    gaps = yaml.safe_load(GAPS.read_text())
    found = {PROVIDERS[provider.id]: provider for provider in data.providers if provider.id in PROVIDERS}
    return {f"{name}.yaml": _book(name, found[name], gaps.get(name, {})) for name in sorted(found)}


def _same(path: Path, text: str) -> bool:
    return path.exists() and path.read_text() == text


def _book(name: str, provider: genai.Provider, gaps: Mapping[str, Any]) -> str:
    release = version("genai-prices")
    lines = [
        "# yaml-language-server: $schema=../schema/prices.schema.json",
        f"# Written by scripts/prices/generate.py from genai-prices {release} and gaps.yaml; do not edit.",
        f"# {provider.name}: list prices per million tokens; of several prices that hold, the last one counts.",
        f"provider: {name}",
        "currency: USD",
        f"source: {(provider.pricing_urls or [])[0]}",
        f"date: {DATE[release]}",
    ]
    lines += [
        f"{key}: {_flow(gaps[key])}{_note(gaps) if key != 'standard_tiers' else ''}"
        for key in ("default_ttl", "missing", "standard_tiers")
        if key in gaps
    ]
    if "modes" in gaps:
        lines += ["modes:", *(f"- {_flow(mode)}" for mode in gaps["modes"])]
    lines.append("models:")
    batch = next((mode for mode in gaps.get("modes", ()) if mode["when"] == "batch"), None)
    for model in provider.models:
        mine = [gap for gap in gaps.get("models", []) if _named(gap["id"], model.id)]
        lines += _model(name, model, mine, batch, gaps.get("stacked", ()))
    for added in gaps.get("added", ()):
        lines += [
            f"- id: {_scalar(added['id'])}",
            f"  match: {_flow(added['match'])}",
            "  prices:",
            *(f"  - {_flow(price)}" for price in added["prices"]),
            f"  source: {added['source']}",
            f"  date: {added['date']}",
        ]
    return "\n".join(lines) + "\n"


def _note(gaps: Mapping[str, Any]) -> str:
    return f"  # {gaps['source']} ({gaps['date']})"


def _named(pattern: str, id_: str) -> bool:
    return bool(re.search(pattern[1:-1], id_)) if pattern.startswith("/") else fnmatchcase(id_, pattern)


def _model(
    book: str,
    model: genai.ModelInfo,
    gaps: list[dict[str, Any]],
    batch: Mapping[str, Any] | None,
    stacked: Iterable[Mapping[str, Any]],
) -> Iterator[str]:
    ttl = write_ttls(book, model.id)
    periods = model.prices if isinstance(model.prices, list) else [genai.ConditionalPrice(prices=model.prices)]
    rates = [_rates(period.prices, ttl) for period in periods]
    if NOT_TEXT.search(model.id) or not all("input" in rate and "output" in rate for rate in rates):
        return
    if book in ONLY_CACHED and not any("read" in rate for rate in rates):
        return
    written = any("write" in rate for rate in rates)
    gaps = [gap for gap in gaps if written or "write_adds" not in gap]
    yield f"- id: {_scalar(model.id)}"
    yield f"  match: {_flow(list(_patterns(model.match)))}"
    yield "  prices:"
    kept = next((gap["prices"] for gap in gaps if "prices" in gap), None)
    yield from (f"  - {_flow(price)}" for price in kept or _listed(periods, rates, gaps))
    modes = list(_modes(model, periods, ttl, batch))
    for upon in stacked:
        modes += [
            mode | {"when": upon["when"], "factor": mode["factor"] * Decimal(str(upon["factor"]))}
            for mode in modes
            if mode["when"] == upon["mode"] and "factor" in mode
        ]
    if modes:
        yield "  modes:"
        yield from (f"  - {_flow(mode)}" for mode in modes)
    for gap in gaps:
        yield f"  source: {gap['source']}"
        yield f"  date: {gap['date']}"
        return
    address = re.search(r"https://[^\s,;)]+[^\s,;).]", model.price_comments or "")
    if address:
        yield f"  source: {address.group()}"


def _listed(
    periods: list[genai.ConditionalPrice], rates: list[dict[str, Any]], gaps: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """The prices of a model over time as the package has them."""
    starts = [_start(period.constraint) for period in periods]
    for period, rate, start in zip(periods, rates, starts, strict=True):
        line: dict[str, Any] = {"from": start} if start else {}
        if isinstance(period.constraint, genai.TimeOfDateConstraint):
            # A daily window listed after a dated price belongs to that price: before its day there was no such window.
            before = [date for date in starts[: periods.index(period)] if date]
            line |= {"from": before[-1]} if before else {}
            line["daily"] = {
                "from": f"{period.constraint.start_time:%H:%M}",
                "to": f"{period.constraint.end_time:%H:%M}",
            }
        for gap in gaps:
            rate = _filled(rate, gap)  # noqa: PLW2901  # one more price
        yield line | {key: value for key, value in rate.items() if value}


def _filled(rate: dict[str, Any], gap: Mapping[str, Any]) -> dict[str, Any]:
    """The prices with those that the package lacks: another time to live, or what is read from a cache."""
    if gap.get("write_adds") and "write" in rate:
        rate = _whole_writes(rate)
    if "write" in rate and "write" in gap:
        rate = rate | {"write": rate["write"] | gap["write"]}
        rate["above"] = [tier | {"write": tier["write"] | gap["write"]} for tier in rate.get("above", [])]
    return rate | {"read": gap["read"]} if "read" in gap and "read" not in rate else rate


def _whole_writes(rate: dict[str, Any]) -> dict[str, Any]:
    """The prices of a catalogue that lists of a write what it adds to the input, with the whole rate of it.

    A write that is listed at more than the input is whole already.
    """
    listed, least = rate["write"], rate["input"]
    if min(listed.values()) >= least:
        return rate
    tiers = [
        tier | {"write": {ttl: tier["input"] + price for ttl, price in tier.get("write", listed).items()}}
        for tier in rate.get("above", [])
        if "input" in tier
    ]
    whole = rate | {"write": {ttl: least + price for ttl, price in listed.items()}}
    return whole | {"above": tiers} if tiers else whole


def write_ttls(book: str, id_: str) -> tuple[str, ...]:
    """Which times to live the plain write price of a model is for."""
    return WRITE_TTL.get(book) or (("5m", "30m") if RESOLD.search(id_) else ("5m",))


def _start(constraint: object) -> str | None:
    return constraint.start_date.isoformat() if isinstance(constraint, genai.StartDateConstraint) else None


def _standard(periods: list[genai.ConditionalPrice], day: str) -> genai.ModelPrice:
    """The listed price that holds on a day, outside daily windows."""
    plain = [period for period in periods if not isinstance(period.constraint, genai.TimeOfDateConstraint)]
    return [period for period in plain if (_start(period.constraint) or "") <= day][-1].prices


def _rates(price: genai.ModelPrice, ttl: tuple[str, ...]) -> dict[str, Any]:
    base: dict[str, Any] = {}
    tiers: dict[int, dict[str, Any]] = {}
    for key, ours in KEYS.items():
        value = getattr(price, key)
        if value is None:
            continue
        _put(base, ours, value.base if isinstance(value, genai.TieredPrices) else value, ttl)
        for tier in value.tiers if isinstance(value, genai.TieredPrices) else ():
            _put(tiers.setdefault(tier.start, {"tokens": tier.start}), ours, tier.price, ttl)
    return base | ({"above": [tiers[start] for start in sorted(tiers)]} if tiers else {})


def _put(rates: dict[str, Any], key: str, price: Decimal, ttl: tuple[str, ...]) -> None:
    # Catalogues that are computed carry thirds; no bill shows a difference in the thirteenth place.
    price = round(price, 12)
    if key in {"write", "1h"}:
        rates.setdefault("write", {}).update(dict.fromkeys(ttl if key == "write" else ("1h",), price))
    else:
        rates[key] = price


def _modes(
    model: genai.ModelInfo, periods: list[genai.ConditionalPrice], ttl: tuple[str, ...], batch: Mapping[str, Any] | None
) -> Iterator[dict[str, Any]]:
    """What service tiers and batches change.

    The package knows a rate since the day it was looked up. Where gaps.yaml says that the provider's batch discount is
    as old as its batches, and the list price of the model has always been the same, that day means nothing: then a
    batch without a time, as some providers' result files are, has a price too.
    """
    # In the package the first that holds counts, in our books the last.
    for variant in reversed(model.price_variants or ()):
        when = next(iter(variant.when.values()))
        if next(iter(variant.when)) not in {"service_tier", "processing", "speed"} or when == "default":
            continue
        rates = _rates(variant.prices, ttl)
        start = _start(variant.constraint)
        # A variant without prices says that the listed ones hold.
        factor = (
            Decimal(1)
            if not rates
            else _factor(rates, _rates(_standard(periods, start or DATE[version("genai-prices")]), ttl))
        )
        if when == "batch" and batch is not None and "from" not in batch:
            if factor == batch["factor"]:
                continue
            start = None if len(periods) == 1 else start
        yield {"when": when} | ({"from": start} if start else {}) | ({"factor": factor} if factor else rates)


def _factor(rates: dict[str, Any], standard: dict[str, Any]) -> Decimal | None:
    """The one number that every standard price is multiplied by, where there is one."""
    ours, theirs = dict(_leaves(standard)), dict(_leaves(rates))
    if ours.keys() != theirs.keys() or not all(ours.values()):
        return None
    factor = (theirs["input",] / ours["input",]).quantize(Decimal("0.001"))
    same = all(theirs[key] == (ours[key] if key[-1] == "tokens" else ours[key] * factor) for key in ours)
    return factor if same else None


def _leaves(rates: Mapping[str, Any], *at: object) -> Iterator[tuple[tuple[object, ...], Decimal]]:
    for key, value in rates.items():
        if isinstance(value, dict):
            yield from _leaves(value, *at, key)
        elif isinstance(value, list):
            for tier in value:
                yield from _leaves(tier, *at, tier["tokens"])
        else:
            yield (*at, key), value


def _patterns(clause: genai.MatchLogic) -> Iterator[str]:
    match clause:
        case genai.ClauseOr(clauses):
            for one in clauses:
                yield from _patterns(one)
        case genai.ClauseAnd(clauses):
            yield f"/^{''.join(f'(?={_lookahead(one)})' for one in clauses)}/"
        case genai.ClauseRegex(regex):
            yield f"/{regex}/"
        case genai.ClauseEquals(text):
            yield text.lower()
        case genai.ClauseStartsWith(text):
            yield f"{text.lower()}*"
        case genai.ClauseEndsWith(text):
            yield f"*{text.lower()}"
        case genai.ClauseContains(text):
            yield f"*{text.lower()}*"
        case _:
            raise ValueError(f"genai-prices matches models in a way unknown here: {clause!r}")


def _lookahead(clause: genai.MatchLogic) -> str:
    match clause:
        case genai.ClauseEquals(text):
            return f"{re.escape(text.lower())}$"
        case genai.ClauseStartsWith(text):
            return re.escape(text.lower())
        case genai.ClauseEndsWith(text):
            return f".*{re.escape(text.lower())}$"
        case genai.ClauseContains(text):
            return f".*{re.escape(text.lower())}"
        case genai.ClauseRegex(regex):
            return regex.removeprefix("^") if regex.startswith("^") else f".*(?:{regex})"
        case genai.ClauseOr(clauses):
            return "|".join(map(_lookahead, clauses))
        case _:
            raise ValueError(f"genai-prices matches models in a way unknown here: {clause!r}")


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal | int | float):
        return f"{Decimal(str(value)).normalize():f}"
    text = str(value)
    plain = re.fullmatch(r"[A-Za-z0-9_./-][A-Za-z0-9_./@+-]*", text) and not re.fullmatch(
        r"[\d.]+|[\d_]*:?|true|false|null|no|yes|on|off", text
    )
    dated = re.fullmatch(r"\d{4}-\d{2}-\d{2}", text)
    return text if plain or dated else "'" + text.replace("'", "''") + "'"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
