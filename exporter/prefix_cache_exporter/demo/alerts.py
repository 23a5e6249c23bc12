"""What Prometheus says of alerts, and what Alertmanager sends: told once each time it changes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from wsgiref.types import StartResponse, WSGIEnvironment

_SPOKEN: Mapping[str, Any] = {"width": 118, "initial_indent": " " * 10, "subsequent_indent": " " * 10}
_SHOWN = ("source", "template", "template_revision", "namespace", "reason")


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert as it stands.

    Attributes:
        name: the rule's name.
        labels: what it is about, in words.
        severity: `page` for what needs a person now.
        state: `pending` or `firing`.
        description: the rule's own words.
    """

    name: str
    labels: str
    severity: str
    state: str
    description: str


def parse_alerts(body: bytes | str) -> list[Alert]:
    """The answer of Prometheus' `/api/v1/alerts`."""
    return [
        Alert(
            alert["labels"]["alertname"],
            _about(alert["labels"]),
            alert["labels"].get("severity", ""),
            alert["state"],
            alert.get("annotations", {}).get("description", ""),
        )
        for alert in json.loads(body)["data"]["alerts"]
    ]


class AlertWatch:
    """Tells what is new about alerts since the last look."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Alert] = {}

    def look(self, alerts: Iterable[Alert]) -> list[str]:
        """One sentence per change, in order of names."""
        current = {(alert.name, alert.labels): alert for alert in alerts}
        before, self._known = self._known, current
        told = []
        for key in sorted({*before, *current}):
            old, new = before.get(key), current.get(key)
            if new is None:
                told.append(f"{key[0]} is over ({key[1]})")
            elif old is None or old.state != new.state:
                severity = f", severity {new.severity}" if new.severity else ""
                told.append(f"{new.name} is {new.state} ({new.labels}{severity})")
        return told


def pager(tell: Callable[[str], None]) -> Callable[[WSGIEnvironment, StartResponse], list[bytes]]:
    """The receiving end of an Alertmanager webhook: a person's pager.

    Args:
        tell: takes one sentence per alert of a notification.
    """

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        for alert in json.loads(body)["alerts"]:
            tell(_page(alert))
        start_response("200 OK", [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", "0")])
        return [b""]

    return answer


def _page(alert: Mapping[str, Any]) -> str:
    labels, notes = alert["labels"], alert.get("annotations", {})
    what = notes.get("description") or notes.get("summary", "")
    state = "PAGE" if alert["status"] == "firing" else "page resolved"
    head = f"{state}: {labels['alertname']} ({_about(labels)})"
    return f"{head}\n{fill(what, **_SPOKEN)}" if what and state == "PAGE" else head


def _about(labels: Mapping[str, str]) -> str:
    return " ".join(labels[name] for name in _SHOWN if labels.get(name)) or "everything"
