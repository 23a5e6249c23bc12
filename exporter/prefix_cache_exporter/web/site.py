"""Which pages there are, and what each asks of the process."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol

from prefix_cache_exporter.status.page import POLICY

from .http import HTML, App, Request, Response, Route, error
from .metrics import CaughtUp, MetricsPage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from prometheus_client.registry import Collector


class Inside(Protocol):
    """What the pages need of the running process."""

    @property
    def version(self) -> str:
        """The line that `--version` prints."""

    @property
    def ledger(self) -> Collector:
        """The ledger's series and gauges."""

    @property
    def runtime(self) -> Sequence[Collector]:
        """Process and runtime metrics of the exporter."""

    @property
    def is_ready(self) -> bool:
        """Whether configuration and maps are loaded. Says nothing about upstream."""

    @property
    def is_caught_up(self) -> bool:
        """Whether logs written while the exporter was away have been read."""

    def status_page(self) -> bytes:
        """The page for a person, as HTML that needs nothing from anywhere."""

    def reload(self) -> str | None:
        """Loads the configuration anew. Returns what is wrong with it, or None."""

    def shown_config(self) -> str:
        """The configuration in force, secrets masked."""

    def count_error(self, worker: str) -> None:
        """Counts an error of the exporter itself."""


def links(telemetry_path: str = "/metrics", base: str = "") -> list[tuple[str, str]]:
    """Title and address of every page that a person may want to go to."""
    return [
        ("Metrics", f"{base}{telemetry_path}"),
        ("Health", f"{base}/-/healthy"),
        ("Readiness", f"{base}/-/ready"),
        ("Configuration", f"{base}/config"),
    ]


def site(inside: Inside, *, telemetry_path: str = "/metrics", prefix: str = "") -> App:
    """The exporter's pages as a WSGI application.

    Args:
        inside: the process.
        telemetry_path: where the metrics are, without the prefix.
        prefix: what every path begins with.
    """

    def home(_: Request) -> Response:
        return Response(inside.status_page(), content_type=HTML, headers=(("Content-Security-Policy", POLICY),))

    def ready(_: Request) -> Response:
        return Response("ready\n") if inside.is_ready else error(HTTPStatus.SERVICE_UNAVAILABLE, "still loading")

    def reload(_: Request) -> Response:
        mistake = inside.reload()
        if mistake is None:
            return Response("reloaded\n")
        return error(HTTPStatus.INTERNAL_SERVER_ERROR, f"the old configuration stays in force: {mistake}")

    routes = {
        "/": Route(home),
        telemetry_path: Route(MetricsPage([CaughtUp(inside.ledger, lambda: inside.is_caught_up), *inside.runtime])),
        "/config": Route(lambda _: Response(inside.shown_config(), content_type="text/yaml; charset=utf-8")),
        "/-/healthy": Route(_fixed("healthy\n")),
        "/-/ready": Route(ready),
        "/-/reload": Route(reload, ("POST", "PUT")),
    }
    return App(routes, prefix, on_error=lambda: inside.count_error("web"))


def _fixed(text: str) -> Callable[[Request], Response]:
    return lambda _: Response(text)
