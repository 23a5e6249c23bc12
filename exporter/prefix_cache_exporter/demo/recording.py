from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prefix_cache_exporter.documents import data_root
from prefix_cache_exporter.web.http import App, Request, Response, Route

if TYPE_CHECKING:
    from pathlib import Path

_JSON = "application/json"
_PAGE = "text/plain; version=0.0.4; charset=utf-8"
_NUMBERED = "[0-9][0-9]_*.prom"


class NoRecordingError(LookupError):
    """The recorded pages are not there: they are part of a checkout, not of the installed package."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The pages of one run of a real server, in the order of its steps.

    Attributes:
        version: what its `/version` answered.
        pages: name of the step and body of `/metrics` after it; the first is before any request.
    """

    version: str
    pages: tuple[tuple[str, bytes], ...]


def load_recording(name: str, folder: Path | None = None) -> Recording:
    """Reads a run that was recorded from a real server.

    Raises:
        NoRecordingError: where the folder is not there.
    """
    folder = (folder or data_root().parent / "tests" / "pages") / name
    files = sorted(folder.glob(_NUMBERED))
    if not files:
        raise NoRecordingError(
            f"no recorded pages in {folder}: they are part of the repository and not of the installed package; "
            "run `make demo` in a checkout"
        )
    version = json.loads((folder / "steps.json").read_bytes())["engine_version"]
    return Recording(version, tuple((file.stem, file.read_bytes()) for file in files))


class Replay:
    """A server that stands at one step of a recording until it is told to go on."""

    def __init__(self, recording: Recording) -> None:
        self._recording, self._step = recording, 0
        self._answered = threading.Condition()
        self._polls = 0

    @property
    def step(self) -> str:
        """The name of the step whose page is served."""
        return self._recording.pages[self._step][0]

    def advance(self) -> bool:
        """Goes on to the next step. Returns whether there was one."""
        if self._step + 1 == len(self._recording.pages):
            return False
        with self._answered:
            self._step, self._polls = self._step + 1, 0
        return True

    def wait_for_polls(self, count: int, seconds: float) -> bool:
        """Waits until the page of this step has been fetched so often. Returns whether it was in time."""
        with self._answered:
            return self._answered.wait_for(lambda: self._polls >= count, seconds)

    def app(self) -> App:
        """The server's pages."""
        return App({"/metrics": Route(self._metrics), "/version": Route(self._version)})

    def _metrics(self, _: Request) -> Response:
        with self._answered:
            self._polls += 1
            self._answered.notify_all()
            return Response(self._recording.pages[self._step][1], content_type=_PAGE)

    def _version(self, _: Request) -> Response:
        return Response(json.dumps({"version": self._recording.version}), content_type=_JSON)
