"""Draws the shipped dashboards in Chromium with Grafana's own components, from a real Prometheus, into PNG files.

Prints, panel by panel, how many series were drawn. Exit status 1 where a page fails or a panel that has queries stays
empty. What this proves and what it does not stands in README.md beside this file.
"""

from __future__ import annotations

import argparse
import contextlib
import http.server
import json
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
PAGE = b"""<!doctype html><meta charset=utf-8><title>preview</title>
<link rel=stylesheet href=/build/main.css><div id=root></div><script src=/build/main.js></script>"""
TYPES = {".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".svg": "image/svg+xml"}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
WIDTH = 1600
ERROR = "data-testid Panel status error"
ICONS_PATH = "/public/build/img/"
ICONS = HERE / "node_modules/@grafana/ui/dist/public/img"


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves the bundle and the dashboards, and hands queries on to Prometheus."""

    prometheus: str
    folders: dict[str, Path]

    def do_GET(self) -> None:
        path = urllib.parse.urlsplit(self.path).path
        if path == "/":
            self._answer(200, "text/html", PAGE)
        elif path.startswith("/prometheus/"):
            self._forward(self.path.removeprefix("/prometheus"))
        else:
            found = [
                folder / path.removeprefix(start) for start, folder in self.folders.items() if path.startswith(start)
            ]
            self._file(*found)

    def _file(self, file: Path = HERE) -> None:
        if file.is_file():
            self._answer(200, TYPES.get(file.suffix, "application/octet-stream"), file.read_bytes())
        else:
            self._answer(404, "text/plain", b"not found")

    def _forward(self, path: str) -> None:
        try:
            with urllib.request.urlopen(self.prometheus + path, timeout=30) as answer:
                self._answer(answer.status, "application/json", answer.read())
        except urllib.error.HTTPError as error:
            with error:
                self._answer(error.code, "application/json", error.read())

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # a browser that leaves does not wait for answers
            super().handle()

    def log_message(self, *_: object) -> None:
        """Silent: the report is the output."""


@contextlib.contextmanager
def server(prometheus: str, dashboards: Path) -> Iterator[str]:
    """The address of a running preview."""
    folders = {"/dashboards/": dashboards, "/build/": HERE / "build", ICONS_PATH: ICONS}
    handler = type("Serving", (Handler,), {"prometheus": prometheus.rstrip("/"), "folders": folders})
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{web.server_address[1]}"
    finally:
        web.shutdown()
        web.server_close()


def panels(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    """Every panel, those in rows included."""
    found = []
    for panel in dashboard["panels"]:
        found += panel.get("panels", []) if panel["type"] == "row" else [panel]
    return found


def draw(page: Any, address: str, dashboard: Path, asked: dict[str, str], width: int = WIDTH) -> dict[str, Any]:
    """Draws one dashboard and returns what each panel drew, by panel id."""
    query = urllib.parse.urlencode({"dashboard": dashboard.name, **asked})
    content = json.loads(dashboard.read_text())
    bottom = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels(content))
    page.set_viewport_size({"width": width, "height": 160 + bottom * 38})
    page.goto(f"{address}/?{query}")
    wanted = [panel["id"] for panel in panels(content)]
    script = "ids => document.body.dataset.failed || ids.every(id => window.drawn[id])"
    with contextlib.suppress(Exception):
        page.wait_for_function(script, arg=wanted, timeout=20_000)
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(700)  # uPlot draws in the next frames
    failed = page.evaluate("document.body.dataset.failed || ''")
    errors = page.get_by_text("An unexpected error happened").count() + page.get_by_test_id(ERROR).count()
    drawn: dict[str, Any] = page.evaluate("window.drawn")
    return {"failed": failed, "errors": errors, "drawn": drawn}


def report(name: str, content: dict[str, Any], result: dict[str, Any]) -> list[str]:
    """One line per panel on standard output; returns what is wrong."""
    wrong = [f"{name}: {result['failed'].splitlines()[0]}"] if result["failed"] else []
    wrong += [f"{name}: {result['errors']} panels show an error"] if result["errors"] else []
    for panel in panels(content):
        drawn = result["drawn"].get(str(panel["id"]))
        series = drawn["series"] if drawn else 0
        said = "" if series or not drawn else drawn.get("message", "")
        print(name, panel["id"], panel["type"], series, panel["title"], said, sep="\t")
        # A list of what is wrong may be empty, and says so.
        if panel.get("targets") and not series and "Empty is good" not in panel["description"]:
            wrong.append(f"{name}: panel {panel['id']} ({panel['title']}) drew nothing")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="file names without .json; all by default")
    parser.add_argument("--prometheus", required=True)
    parser.add_argument("--dashboards", type=Path, default=HERE.parent)
    parser.add_argument("--out", type=Path, default=HERE / "build" / "pictures")
    parser.add_argument("--theme", choices=("light", "dark"), default="light")
    parser.add_argument("--width", type=int, default=WIDTH, help="of the page, in pixels")
    parser.add_argument("--from", dest="start", default="")
    parser.add_argument("--to", dest="end", default="")
    parser.add_argument("--var", action="append", default=[], metavar="NAME=VALUE")
    arguments = parser.parse_args()
    files = sorted(arguments.dashboards.glob("*.json"))
    files = [file for file in files if not arguments.names or file.stem in arguments.names]
    chosen = dict(one.split("=", 1) for one in arguments.var)
    asked = {"theme": arguments.theme, **{f"var-{name}": value for name, value in chosen.items()}}
    asked |= {name: value for name, value in (("from", arguments.start), ("to", arguments.end)) if value}
    arguments.out.mkdir(parents=True, exist_ok=True)
    wrong: list[str] = []
    with server(arguments.prometheus, arguments.dashboards) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        page = browser.new_page()
        page.on("pageerror", lambda error: print(f"page error: {error}", file=sys.stderr))
        for file in files:
            result = draw(page, address, file, asked, arguments.width)
            page.screenshot(path=arguments.out / f"{file.stem}.png", full_page=True)
            wrong += report(file.stem, json.loads(file.read_text()), result)
        browser.close()
    print(*wrong, sep="\n", file=sys.stderr)
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main())
