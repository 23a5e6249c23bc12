"""A folder of logs, a follower over it that can be killed and started anew, and everything it gave."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from typing import TYPE_CHECKING

from prefix_cache_exporter.usage.follow import Follower

if TYPE_CHECKING:
    from pathlib import Path


class Logs:
    """Writes, rotates, polls and kills; `lines` holds what arrived, committed or not is the same here."""

    def __init__(self, folder: Path, *patterns: str, **options) -> None:
        self.folder = folder
        self.patterns = [pattern if pattern == "-" else str(folder / pattern) for pattern in patterns or ("app.log",)]
        self.options = options
        self.now = 1000.0
        self.lines: list[str] = []
        self.lost: Counter[str] = Counter()
        self.lost_files: Counter[str] = Counter()
        self.cursors: dict[str, bytes] = {}
        self.start()

    def start(self) -> None:
        self.follower = Follower(self.patterns, self.cursors, clock=lambda: self.now, **self.options)

    def kill(self) -> None:
        """Ends the process; what was polled has been stored."""
        self.follower.close()
        self.start()

    def poll(self, seconds: float = 1.0, *, draining: bool = False) -> list[str]:
        """Lets time pass, reads what is there, and returns the new lines."""
        self.now += seconds
        before = len(self.lines)
        for batch in self.follower.poll(draining=draining):
            self.lines += [line.decode() for line in batch.lines]
            self.lost.update(batch.lost)
            self.lost_files.update(batch.lost_files)
            for name, payload in batch.cursors.items():
                if payload is None:
                    del self.cursors[name]
                else:
                    self.cursors[name] = payload
        return self.lines[before:]

    def path(self, name: str = "app.log") -> Path:
        return self.folder / name

    def write(self, text: str | bytes, name: str = "app.log") -> None:
        """Replaces a file's content in place."""
        self.path(name).write_bytes(text.encode() if isinstance(text, str) else text)

    def append(self, text: str | bytes, name: str = "app.log") -> None:
        with self.path(name).open("ab") as file:
            file.write(text.encode() if isinstance(text, str) else text)

    def rename(self, to: str = "app.log.1", name: str = "app.log") -> None:
        self.path(name).rename(self.path(to))

    def copytruncate(self, to: str = "app.log.1", name: str = "app.log") -> None:
        self.path(to).write_bytes(self.path(name).read_bytes())
        os.truncate(self.path(name), 0)

    def gzip(self, name: str = "app.log.1") -> None:
        """Packs a file the way gzip and kubelet do: a new file, then the old one goes."""
        self.path(name + ".gz").write_bytes(gzip.compress(self.path(name).read_bytes()))
        self.path(name).unlink()


def record(number: int | str, tokens: int = 10) -> str:
    """One usage line as the public cases write it."""
    return (
        f'{{"id": "L{number}", "usage": {{"prompt_tokens": {tokens}, "completion_tokens": 1, '
        f'"total_tokens": {tokens + 1}, "prompt_tokens_details": {{"cached_tokens": 0}}}}}}\n'
    )


def ids(lines: list[str]) -> list[str]:
    """The ids of such lines."""
    return [line.split('"')[3] for line in lines]
