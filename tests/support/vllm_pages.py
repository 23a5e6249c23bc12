"""Pages as any vLLM release writes them, made from the facts of that release and the values a test cares about."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FACTS = Path(__file__).parents[1] / "facts" / "vllm.json"
_VALUES_OF = {
    "finished_reason": ("stop", "length", "abort"),
    "sleep_state": ("awake", "weights_offloaded", "discard_all"),
    "reason": ("capacity", "deferred"),
    "vllm:prompt_tokens_by_source": ("local_compute", "local_cache_hit", "external_kv_transfer"),
    "vllm:prompt_tokens_cached_by_source": ("device", "host", "p2p", "disk", "external_unspecified"),
}
_INFO = {
    "block_size": "16",
    "prefix_caching_hash_algo": "sha256",
    "num_gpu_blocks": "1000",
    "enable_prefix_caching": "True",
    "kv_cache_size_tokens": "16000",
}


@dataclass(frozen=True)
class Registered:
    """One family of one release and dialect."""

    family: str
    type: str
    labels: tuple[str, ...]
    help: str
    gates: tuple[str, ...]


@cache
def releases() -> tuple[str, ...]:
    return tuple(json.loads(FACTS.read_text())["releases"])


@cache
def registered(release: str, dialect: str = "v1") -> Mapping[str, Registered]:
    """What a release registers in a dialect, by family."""
    order = releases()
    place = order.index(release)
    return {
        row["family"]: Registered(
            row["family"], row["type"], tuple(row["labels"]), row["help"], tuple(row.get("gates", ()))
        )
        for row in json.loads(FACTS.read_text())["families"]
        if row["dialect"] == dialect
        and any(order.index(first) <= place <= order.index(last) for first, last in row["releases"])
    }


def vllm_page(
    release: str,
    values: Mapping[str, float] | None = None,
    *,
    dialect: str = "v1",
    engines: Iterable[int] = (0,),
    model: str = "m",
    prefix: str = "vllm:",
    gates: Iterable[str] = (),
    without: Iterable[str] = (),
    info: Mapping[str, str] | None = None,
    extra: str = "",
    started: float | None = 1000.0,
) -> bytes:
    """A whole page in Prometheus text.

    Args:
        release, dialect: whose families stand on it.
        values: by family without prefix (`prompt_tokens`, or `prompt_tokens@1` for one engine, or `x{stop}` for the
            value of its own label); all others are 0.
        engines, model: what its series are labelled with.
        prefix: what stands for `vllm:`.
        gates: flags that are on.
        without: families to leave out, without prefix.
        info: labels of `cache_config_info` that differ from the usual.
        extra: lines to append.
        started: the process start time; None leaves it out.
    """
    lines = []
    if started is not None:
        lines += ["# TYPE process_start_time_seconds gauge", f"process_start_time_seconds {started}"]
    found = dict(values or {})
    for item in registered(release, dialect).values():
        bare = item.family.removeprefix("vllm:")
        if bare in without or not all(any(gate in needed for gate in gates) for needed in item.gates):
            continue
        name = prefix + bare
        wire = f"{name}_total" if item.type == "counter" else name
        lines += [f"# HELP {wire} {item.help}", f"# TYPE {wire} {item.type}"]
        for engine in engines if "engine" in item.labels else (next(iter(engines)),):
            labels = {"model_name": model} if "model_name" in item.labels else {}
            if "engine" in item.labels:
                labels["engine"] = str(engine)
            lines += _samples(item, wire, labels, engine, values=found, info=info)
    return ("\n".join([*lines, *extra.splitlines()]) + "\n").encode()


def _samples(item, wire, labels, engine, *, values, info):
    bare = item.family.removeprefix("vllm:")

    def at(own=""):
        return values.get(f"{bare}{own}@{engine}", values.get(f"{bare}{own}", 0))

    if bare == "cache_config_info":
        known = {**_INFO, **(info or {})}
        said = {label: known.get(label, "None") for label in item.labels if label != "engine"}
        return [_line(wire, {**labels, **said}, 1.0)]
    if item.type == "histogram":
        count = at()
        buckets = [_line(f"{wire}_bucket", {**labels, "le": edge}, count) for edge in ("100.0", "1000.0", "+Inf")]
        total = values.get(f"{bare}_sum@{engine}", values.get(f"{bare}_sum", count))
        return [*buckets, _line(f"{wire}_count", labels, count), _line(f"{wire}_sum", labels, total)]
    own = [label for label in item.labels if label not in {"model_name", "engine"}]
    if not own:
        return [_line(wire, labels, at())]
    choices = _VALUES_OF.get(item.family) or _VALUES_OF.get(own[0], ("x",))
    return [_line(wire, {**labels, own[0]: value}, at("{" + value + "}")) for value in choices]


def _line(name, labels, value):
    inside = ",".join(f'{label}="{text}"' for label, text in labels.items())
    return f"{name}{{{inside}}} {float(value)!r}"


def as_openmetrics(body: bytes, *, without: Iterable[str] = ()) -> bytes:
    """The same page as a front end writes it that answers OpenMetrics."""
    lines = []
    for line in body.decode().splitlines():
        word = line.split(" ", 3)
        name = word[2] if line.startswith("#") else line.partition("{")[0].partition(" ")[0]
        if any(name.startswith(gone) for gone in without):
            continue
        if line.startswith("# ") and word[2].endswith("_total") and "iteration_tokens" not in word[2]:
            lines.append(line.replace(word[2], word[2].removesuffix("_total"), 1))
        else:
            lines.append(line)
    return ("\n".join(lines) + "\n# EOF\n").encode()
