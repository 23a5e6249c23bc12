"""Draws every dashboard from a made history, light and dark, into build/pictures: what `make preview` runs.

The history is that of the tests, which have to be on the path: a fleet that is busy, releases a template revision, and
goes to rest.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from support import fleet_data, tsdb

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
OUT = HERE / "build" / "pictures"
WARM = 600
"""Seconds before the first pictured moment: rates need samples behind them."""


def moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def main() -> int:
    start = float((int(time.time()) - fleet_data.END - 3600) // 3600 * 3600)
    span = ["--from", moment(start + WARM), "--to", moment(start + fleet_data.BUSY - fleet_data.STEP)]
    with tempfile.TemporaryDirectory() as folder:
        rules = sorted((ROOT / "alerts").glob("*.rules.yaml"))
        data = tsdb.made(Path(folder), fleet_data.openmetrics(start), rules, start, start + fleet_data.END)
        with tsdb.prometheus(data) as address:
            command = [sys.executable, HERE / "preview.py", "--prometheus", address, *span, *sys.argv[1:]]
            failed = [
                subprocess.run([*command, "--theme", theme, "--out", OUT / theme], check=False).returncode
                for theme in ("light", "dark")
            ]
    print(f"pictures: {OUT}")
    return max(failed)


if __name__ == "__main__":
    sys.exit(main())
