"""What vLLM's HTTP front end counts beside the engine: calls by handler, their sizes and durations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Histogram, Summary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prometheus_client import CollectorRegistry


class Http:
    """The families of prometheus-fastapi-instrumentator.

    Args:
        registry: where they go.
        bounds: bucket bounds by name: `http_fine` and `http`.
    """

    def __init__(self, registry: CollectorRegistry, bounds: Mapping[str, Sequence[float]]) -> None:
        sizes = "Only value of header is respected. Otherwise ignored. No percentile calculated. "
        self._requests = Counter(
            "http_requests",
            "Total number of requests by method, status and handler.",
            ["method", "status", "handler"],
            registry=registry,
        )
        self._received = Summary(
            "http_request_size_bytes",
            f"Content length of incoming requests by handler. {sizes}",
            ["handler"],
            registry=registry,
        )
        self._sent = Summary(
            "http_response_size_bytes",
            f"Content length of outgoing responses by handler. {sizes}",
            ["handler"],
            registry=registry,
        )
        self._seconds = Histogram(
            "http_request_duration_highr_seconds",
            "Latency with many buckets but no API specific labels. Made for more accurate percentile calculations. ",
            registry=registry,
            buckets=bounds["http_fine"],
        )
        self._seconds_by_handler = Histogram(
            "http_request_duration_seconds",
            "Latency with only few buckets by handler. Made to be only used if aggregation by handler is important. ",
            ["method", "handler"],
            registry=registry,
            buckets=bounds["http"],
        )

    def observe(self, handler: str, method: str, status: str, seconds: float, sizes: tuple[int, int]) -> None:
        """Counts one call; sizes are bytes received and sent."""
        self._requests.labels(method=method, status=status, handler=handler).inc()
        self._received.labels(handler=handler).observe(sizes[0])
        self._sent.labels(handler=handler).observe(sizes[1])
        self._seconds.observe(seconds)
        self._seconds_by_handler.labels(method=method, handler=handler).observe(seconds)
