from __future__ import annotations

import json

import pytest
import requests

from prefix_cache_exporter.demo.alerts import AlertWatch, pager, parse_alerts
from prefix_cache_exporter.web.address import Address
from prefix_cache_exporter.web.server import WebServer


def answer(*states: str) -> str:
    """Prometheus' answer with one alert per state."""
    return json.dumps(
        {
            "status": "success",
            "data": {
                "alerts": [
                    {
                        "labels": {
                            "alertname": f"Alert{number}",
                            "severity": "page",
                            "template": "support",
                            "job": "x",
                        },
                        "annotations": {"description": "0 of 9 tokens"},
                        "state": state,
                        "value": "0",
                    }
                    for number, state in enumerate(states)
                ]
            },
        }
    )


def test_changes_are_told_once():
    watch = AlertWatch()

    assert watch.look(parse_alerts(answer())) == []
    assert watch.look(parse_alerts(answer("pending"))) == ["Alert0 is pending (support, severity page)"]
    assert watch.look(parse_alerts(answer("pending"))) == []
    assert watch.look(parse_alerts(answer("firing", "firing"))) == [
        "Alert0 is firing (support, severity page)",
        "Alert1 is firing (support, severity page)",
    ]
    assert watch.look([]) == ["Alert0 is over (support)", "Alert1 is over (support)"]


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ("firing", "PAGE: Collapsed (support r43)\n          0 of 9 tokens"),
        ("resolved", "page resolved: Collapsed (support r43)"),
    ],
)
def test_a_page_is_told_in_words(status, told):
    heard: list[str] = []
    server = WebServer(pager(heard.append), [Address("127.0.0.1", 0)])
    server.start()
    alert = {
        "status": status,
        "labels": {"alertname": "Collapsed", "template": "support", "template_revision": "r43"},
        "annotations": {"description": "0 of 9 tokens"},
    }
    try:
        assert requests.post(f"http://{server.addresses[0]}/", json={"alerts": [alert]}, timeout=5).ok
    finally:
        server.stop()

    assert heard == [told]


def test_a_page_about_nothing_in_particular():
    alert = {"status": "firing", "labels": {"alertname": "Absent"}}
    heard: list[str] = []
    body = json.dumps({"alerts": [alert]}).encode()

    class Stream:
        def read(self, length: int) -> bytes:
            return body[:length]

    pager(heard.append)({"wsgi.input": Stream(), "CONTENT_LENGTH": str(len(body))}, lambda *_: None)

    assert heard == ["PAGE: Absent (everything)"]
