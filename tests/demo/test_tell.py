"""The demo on its stage: real servers on loopback, a real exporter between them, and what is said of it."""

from __future__ import annotations

import io
import json
import re
import signal
import socket
import threading
import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
import requests

from prefix_cache_exporter.__main__ import main
from prefix_cache_exporter.demo import stage as stages
from prefix_cache_exporter.demo import tell as telling
from prefix_cache_exporter.demo.alerts import parse_alerts
from prefix_cache_exporter.demo.plot import Chapter
from prefix_cache_exporter.demo.prompts import SUPPORT_R41, SUPPORT_R42, SUPPORT_R43
from prefix_cache_exporter.demo.readings import totals
from prefix_cache_exporter.demo.stage import Stage
from prefix_cache_exporter.demo.tell import tell
from prefix_cache_exporter.measures import ENGINE, USAGE
from prefix_cache_exporter.serve.ending import Signals
from prefix_cache_exporter.web.address import Address
from prefix_cache_exporter.web.http import App, Response, Route
from prefix_cache_exporter.web.server import WebServer

if TYPE_CHECKING:
    from collections.abc import Callable

SHORT = (
    Chapter("warm and healthy", "Look.", SUPPORT_R41, 2.0),
    Chapter("a release", "Look again.", SUPPORT_R42, 2.0),
)

PATIENCE = 90.0
pytestmark = pytest.mark.usefixtures("signal_handlers")


@pytest.fixture
def often(monkeypatch):
    monkeypatch.setattr(telling, "_LINE_SECONDS", 1.0)


def eventually(holds: Callable[[], object], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.2)


class Listener(io.StringIO):
    """Presses Ctrl-C once it has heard what it waits for."""

    def __init__(self, pattern: str) -> None:
        super().__init__()
        self._pattern, self._heard = pattern, False

    def flush(self) -> None:
        if not self._heard and re.search(self._pattern, self.getvalue(), re.DOTALL):
            self._heard = True
            signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("often")
def test_chapters_and_ratios_are_told_with_both_sides():
    out = Listener(r"The end\..* support r42    Request hit ratio +[0-9.]+% = ")
    tell(PATIENCE, SHORT, out, programs=False)

    told = out.getvalue()
    assert "status page     http://127.0.0.1:" in told
    assert "Prometheus is not installed, so nothing is alerted on" in told
    assert "Chapter 1: warm and healthy.\nLook.\n" in told
    assert "Chapter 2: a release.\nLook again.\n" in told
    assert "The end. http://127.0.0.1:" in told
    assert re.search(r" support r4.    Population hit ratio \(engine\) +[0-9.]+% = [0-9,]+ / [0-9,]+ tokens\n", told)
    assert re.search(r" support r4.    Eligible-prefix effectiveness +[0-9.]+% = [0-9,]+ / [0-9,]+ tokens\n", told)
    assert re.search(r" search r7, untouched, over the whole chapter: Population hit ratio \(engine\) ", told)


def test_it_ends_with_a_signal_in_the_middle_of_a_chapter():
    out = Listener("Chapter 1")
    tell(PATIENCE, SHORT, out, programs=False)

    assert "Chapter 2" not in out.getvalue()


def test_it_stays_open_for_a_time_after_the_story_and_finds_another_port(monkeypatch, capsys):
    monkeypatch.setenv("DEMO_SECONDS", "0.5")
    monkeypatch.setattr(telling, "CHAPTERS", SHORT)
    monkeypatch.setattr(stages, "find", lambda _: None)
    with socket.socket() as taken:
        taken.bind((stages.LOOPBACK, 0))
        taken.listen()
        monkeypatch.setattr(stages, "DEFAULT_PORT", taken.getsockname()[1])

        assert main(["demo"]) == 0

    told = capsys.readouterr().out
    assert "Chapter 2" in told
    assert "stays open for 0.5 s; Ctrl-C ends it." in told


def test_what_was_begun_is_ended_where_the_rest_cannot_begin(tmp_path, monkeypatch):
    monkeypatch.setattr(stages, "Sidecar", lambda *_: pytest.fail("no exporter today"))
    threads = threading.active_count()

    with pytest.raises(pytest.fail.Exception):
        Stage(tmp_path, print, programs=False)

    eventually(lambda: threading.active_count() <= threads, 10)


def test_without_alertmanager_alerts_are_shown_and_nobody_is_paged(tmp_path, monkeypatch):
    found = dict.fromkeys(stages.PROMETHEUS, "true")
    monkeypatch.setattr(stages, "find", lambda names: found.get(names[0]))
    with Stage(tmp_path, print) as stage:
        said = telling._introduction(stage)
        assert telling.Narrator(stage, print)._alert_changes() == []  # nobody answers there

    assert "Alertmanager is not installed, so nobody is paged" in said
    assert "alerting" not in (tmp_path / "prometheus.yml").read_text("utf-8")


@pytest.mark.prometheus
def test_the_broken_release_pages_and_the_harmless_one_does_not(tmp_path):
    """The story itself, each part as long as it needs: about a minute."""
    pages: list[str] = []
    with Stage(tmp_path, pages.append) as stage:

        def alerts() -> dict[tuple[str, str], str]:
            answer = requests.get(f"{stage.prometheus}/api/v1/alerts", timeout=5)
            return {(alert.name, alert.labels): alert.state for alert in parse_alerts(answer.content)}

        def rules() -> list[dict]:
            groups = requests.get(f"{stage.prometheus}/api/v1/rules", timeout=5).json()["data"]["groups"]
            return [rule for group in groups for rule in group["rules"]]

        def counted(revision: str) -> float:
            family = USAGE["prompt_tokens"].series_name
            page = requests.get(f"{stage.exporter}/metrics", timeout=5).text
            lines = [line for line in page.splitlines() if line.startswith(family) and f'"{revision}"' in line]
            return sum(float(line.rpartition(" ")[2]) for line in lines)

        def up() -> bool:
            try:
                return bool(rules()) and all(rule["health"] == "ok" for rule in rules())
            except requests.RequestException:
                return False

        eventually(up, 30)
        eventually(lambda: counted("r41") > 300_000, 60)
        stage.release(SUPPORT_R42)
        eventually(lambda: counted("r42") > 500_000, 60)
        assert pages == []

        stage.release(SUPPORT_R43)
        eventually(lambda: pages, 60)
        assert ("PrefixCachePrefixFragmented", "support-gateway support r43") in alerts()
        assert totals(requests.get(f"{stage.exporter}/metrics", timeout=5).text)

    assert all(page.startswith("PAGE: PrefixCacheCollapsedAfterRelease (support-") for page in pages)
    assert all(" support r43)" in page for page in pages)
    assert stage.alertmanager is not None


@dataclass
class Stub:
    """As much of a stage as a narrator looks at, with an exporter and a Prometheus of our own."""

    exporter: str
    prometheus: str
    answers: dict[str, str]
    sidecar: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(signals=Signals()))

    def alerts(self, *names: str, state: str = "firing", scraped: bool = True) -> None:
        alerts = [{"labels": {"alertname": name}, "annotations": {}, "state": state} for name in names]
        self.answers["/api/v1/alerts"] = json.dumps({"data": {"alerts": alerts}})
        targets = [{"health": "up" if scraped else "unknown"}]
        self.answers["/api/v1/targets"] = json.dumps({"data": {"activeTargets": targets}})


@pytest.fixture
def stub():
    answers = {"/metrics": "", "/api/v1/alerts": "", "/api/v1/targets": ""}
    routes = {path: Route(lambda request: Response(answers[request.path])) for path in answers}
    server = WebServer(App(routes), [Address(stages.LOOPBACK, 0)])
    server.start()
    one = Stub(*[f"http://{server.addresses[0]}"] * 2, answers)
    one.alerts()
    yield one
    server.stop()


def test_alerts_are_told_as_they_change_and_a_chapter_has_its_end(stub, monkeypatch):
    monkeypatch.setattr(telling, "_LOOK_SECONDS", 0.05)
    stub.alerts("Collapsed")
    told: list[str] = []

    assert telling.Narrator(stub, told.append).watch(Chapter("", "", SUPPORT_R41, 0.5))

    assert told == ["Collapsed is firing (everything)"]


def test_that_no_exporter_was_ever_scraped_is_no_news_until_it_fires(stub):
    narrator = telling.Narrator(stub, print)

    def told(**how) -> list[str]:
        stub.alerts("PrefixCacheExporterAbsent", "Collapsed", **how)
        return narrator._alert_changes()

    assert told(state="pending", scraped=False) == ["Collapsed is pending (everything)"]
    assert told(state="pending") == []  # scraped, and not yet evaluated again
    stub.alerts("Collapsed", state="pending")
    assert narrator._alert_changes() == []
    assert told(state="pending") == ["PrefixCacheExporterAbsent is pending (everything)"]  # it was there and is gone


def test_no_exporter_at_all_is_told_when_it_fires(stub):
    stub.alerts("PrefixCacheExporterAbsent", scraped=False)

    assert telling.Narrator(stub, print)._alert_changes() == ["PrefixCacheExporterAbsent is firing (everything)"]


def page(**prompt_tokens: int) -> str:
    name = ENGINE["prompt_tokens"].name
    series = (
        f'{name}_total{{source="support-vllm",template_revision="{revision}"}} {amount}'
        for revision, amount in prompt_tokens.items()
    )
    return "\n".join((f"# TYPE {name}_total counter", *series, ""))


def test_a_line_speaks_of_the_revision_that_its_tokens_belong_to(stub, monkeypatch):
    monkeypatch.setattr(telling, "_LOOK_SECONDS", 0.05)
    monkeypatch.setattr(telling, "_LINE_SECONDS", 0.3)
    told: list[str] = []
    narrator = telling.Narrator(stub, told.append)
    stub.answers["/metrics"] = page(r41=100)
    narrator.watch(Chapter("", "", SUPPORT_R41, 0.4))
    stub.answers["/metrics"] = page(r41=110, mixed=20, r42=5)
    narrator.watch(Chapter("", "", SUPPORT_R42, 0.4))

    assert told == [
        "support r41    nothing counted yet",
        "support r41    Population hit ratio (engine)    0.0% = 0 / 10 tokens",
        "support mixed  Population hit ratio (engine)    0.0% = 0 / 20 tokens",
        "support r42    Population hit ratio (engine)    0.0% = 0 / 5 tokens",
    ]


def test_a_chapter_is_left_when_the_time_is_up(stub):
    narrator = telling.Narrator(stub, print)
    narrator.end = time.monotonic()
    assert not narrator.watch(Chapter("", "", SUPPORT_R41, 60.0))
