"""Which form of the metrics page a scraper gets, and whether compressed.

prometheus-client's own choice ignores weights and fails on a version that is no number, so the choice is made here and
only the encoding is left to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import exposition
from prometheus_client.openmetrics import exposition as openmetrics

from .encoder import Encoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client.registry import Collector

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_ENCODE_TEXT = Encoder(exposition.generate_latest)
_ENCODE_OPENMETRICS = Encoder(openmetrics.generate_latest)


def choose(accept: str) -> tuple[Callable[[Collector], bytes], str]:
    """The encoder and content type for an Accept header.

    OpenMetrics where a scraper asks for version 1 of it, or for no version, at least as much as for text; text
    otherwise, also for a header that makes no sense: a scrape must never fail over its header.
    """
    openmetrics_weight = text_weight = 0.0
    for kind, parameters in _accepted(accept):
        weight = _weight(parameters)
        if kind == "application/openmetrics-text" and parameters.get("version", "1.0.0").startswith("1."):
            openmetrics_weight = max(openmetrics_weight, weight)
        elif kind in {"text/plain", "text/*", "*/*"}:
            text_weight = max(text_weight, weight)
    if openmetrics_weight > 0 and openmetrics_weight >= text_weight:
        return _ENCODE_OPENMETRICS, OPENMETRICS
    return _ENCODE_TEXT, TEXT


def takes_gzip(accept_encoding: str) -> bool:
    """Whether an Accept-Encoding header allows gzip."""
    weights = {kind: _weight(parameters) for kind, parameters in _accepted(accept_encoding)}
    return weights.get("gzip", weights.get("*", 0.0)) > 0


def _accepted(header: str) -> Iterator[tuple[str, dict[str, str]]]:
    for item in header.split(","):
        kind, *parameters = (part.strip() for part in item.split(";"))
        pairs = (parameter.partition("=") for parameter in parameters)
        yield kind.lower(), {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs}


def _weight(parameters: dict[str, str]) -> float:
    try:
        return min(max(float(parameters.get("q", "1")), 0.0), 1.0)
    except ValueError:
        return 0.0
