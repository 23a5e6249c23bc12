"""A run written as `tests/pages/README.md` describes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

PAGES = Path(__file__).resolve().parents[1] / "pages"
EXPECTED = (
    *("prompt_tokens", "generation_tokens", "preemptions"),
    *("lookup_tokens", "lookup_hit_tokens", "cached_prompt_tokens"),
)


class Recording:
    """Pages and steps of one server.

    Args:
        name: of the folder.
        shared: from a block size, what the script's prompts share.
        root: the folder of all recordings.
    """

    def __init__(self, name: str, shared: Callable[[int], dict[str, int]] | None, root: Path = PAGES) -> None:
        self.folder = root / name
        self._shared = shared
        self._pages: dict[str, str] = {}
        self._steps: list[dict[str, Any]] = []
        self._increases: dict[str, dict[str, float | None]] = {}
        self.version = ""
        self._shares: dict[str, int] | None = None

    def known(self, version: str, block_size: int) -> None:
        """Notes what the server said of itself."""
        self.version = version
        self._shares = self._shared(block_size) if self._shared else None

    def page(self, name: str, body: str) -> None:
        """Notes the page after a step."""
        self._pages[name] = body

    def step(
        self, name: str, note: str, *, seconds: float, requests: list[dict[str, Any]], increases: dict[str, float]
    ) -> None:
        """Notes a step, and what the sidecar counted."""
        self._steps.append({"step": name, "note": note, "seconds": round(seconds, 3), "requests": requests})
        self._increases[name] = {measure: increases.get(measure) for measure in EXPECTED}

    def write(self) -> Path:
        """Writes everything, in place of an earlier recording of the same name."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for name, body in self._pages.items():
            (self.folder / f"{name}.prom").write_text(body, "utf-8")
        (self.folder / "steps.json").write_text(self._listed(), "utf-8")
        file = self.folder.parent / "expected.json"
        expected = json.loads(file.read_text("utf-8")) if file.exists() else {}
        expected[self.folder.name] = self._increases
        file.write_text(json.dumps(dict(sorted(expected.items())), indent=1), "utf-8")
        return self.folder

    def _listed(self) -> str:
        """One request a line, so that two recordings can be compared by eye."""
        lines = [f'{{"engine_version": {json.dumps(self.version)},', f' "shared_prefix": {json.dumps(self._shares)},']
        steps = []
        for step in self._steps:
            head = json.dumps({key: value for key, value in step.items() if key != "requests"})[:-1]
            requests = ",\n".join(f"   {json.dumps(request)}" for request in step["requests"])
            steps.append("\n".join([f'  {head}, "requests": [', *([requests] if requests else []), "  ]}"]))
        return "\n".join([*lines, ' "steps": [', ",\n".join(steps), " ]}", ""])
