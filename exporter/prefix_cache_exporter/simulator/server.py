"""What a vLLM server answers to whoever watches it."""

from __future__ import annotations

import json
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

from prefix_cache_exporter.web.http import App, Request, Response, Route

from .page import CONTENT_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable

    from .live import LiveEngine

_JSON = "application/json"


def application(engine: LiveEngine, clock: Callable[[], float] = time.time) -> App:
    """A WSGI application with `/metrics`, `/version`, `/health` and `/reset_prefix_cache`.

    Args:
        engine: what is watched.
        clock: seconds since 1970; the engine has worked until then when it answers.
    """

    def metrics(request: Request) -> Response:
        del request
        engine.advance(clock())
        return Response(engine.metrics(), content_type=CONTENT_TYPE)

    def version(request: Request) -> Response:
        del request
        return Response(json.dumps({"version": engine.version}), content_type=_JSON)

    def health(request: Request) -> Response:
        del request
        return Response()

    def reset(request: Request) -> Response:
        del request
        done = engine.reset_cache()
        return Response(status=HTTPStatus.OK if done else HTTPStatus.CONFLICT)

    return App(
        {
            "/metrics": Route(metrics),
            "/version": Route(version),
            "/health": Route(health),
            "/reset_prefix_cache": Route(reset, ("POST",)),
        }
    )
