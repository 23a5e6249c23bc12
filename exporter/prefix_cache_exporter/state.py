"""Durable state: the ledger and every position in one SQLite transaction.

A kill at any instant leaves either both a counter and the position that explains it, or neither. A file that is corrupt
or not ours is set aside and never fatal: an exporter without its past is better than none.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sqlite3
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from .ledger import Key, Release, Series

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .ledger import Ledger

_APPLICATION = 0x70_63_65_78
"""`PRAGMA application_id`: the bytes of "pcex" say that a SQLite file is ours."""
_VERSION = 1
_TABLES = """
CREATE TABLE series (
    family TEXT, labels TEXT, parts TEXT, base TEXT, hold_until REAL, PRIMARY KEY (family, labels)
) WITHOUT ROWID;
CREATE TABLE release (labels TEXT PRIMARY KEY, touched REAL, first_traffic REAL) WITHOUT ROWID;
CREATE TABLE cursor (kind TEXT, name TEXT, payload BLOB, PRIMARY KEY (kind, name)) WITHOUT ROWID;
"""

_log = logging.getLogger(__name__)

Cursors = dict[tuple[str, str], bytes]
"""Positions by kind (`engine`, `log`, …) and name."""


class Store:
    """One state file, or memory where no path is given.

    Attributes:
        set_aside: files that were found unusable at start and renamed.
    """

    def __init__(self, path: Path | str | None) -> None:
        self.path = None if path is None else Path(path)
        self.set_aside = 0
        self._db = self._open()
        # Python complains of a connection that is dropped unclosed; here nothing is lost by it.
        self._closing = weakref.finalize(self, self._db.close)
        self._closing.atexit = False  # a thread may still be writing

    def load(self, ledger: Ledger) -> Cursors:
        """Fills a fresh ledger and returns the positions that belong to it."""
        rows = self._db.execute("SELECT family, labels, parts, base, hold_until FROM series").fetchall()
        releases = self._db.execute("SELECT labels, touched, first_traffic FROM release").fetchall()
        ledger.restore(
            ((Key(f, tuple(json.loads(v))), Series(json.loads(p), json.loads(b), h)) for f, v, p, b, h in rows),
            ((tuple(json.loads(v)), Release(touched, first)) for v, touched, first in releases),
        )
        positions = self._db.execute("SELECT kind, name, payload FROM cursor").fetchall()
        return {(kind, name): payload for kind, name, payload in positions}

    def write(self, ledger: Ledger, cursors: Mapping[tuple[str, str], bytes | None]) -> None:
        """Commits what is dirty in the ledger, and positions, in one transaction.

        Raises:
            sqlite3.Error: where the disk refuses; nothing has been written then.
        """
        series = [(key, ledger.series[key]) for key in ledger.dirt.series]
        releases = [(name, ledger.releases[name]) for name in ledger.dirt.releases]
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(
                "DELETE FROM series WHERE family = ? AND labels = ?",
                [(key.family, _text(key.values)) for key in ledger.dirt.gone],
            )
            self._db.executemany(
                "DELETE FROM release WHERE labels = ?", [(_text(name),) for name in ledger.dirt.gone_releases]
            )
            self._db.executemany(
                "INSERT OR REPLACE INTO series VALUES (?, ?, ?, ?, ?)",
                [(k.family, _text(k.values), _text(one.parts), _text(one.base), one.hold_until) for k, one in series],
            )
            self._db.executemany(
                "INSERT OR REPLACE INTO release VALUES (?, ?, ?)",
                [(_text(name), one.touched, one.first_traffic) for name, one in releases],
            )
            self._db.executemany("DELETE FROM cursor WHERE kind = ? AND name = ?", _positions(cursors, gone=True))
            self._db.executemany("INSERT OR REPLACE INTO cursor VALUES (?, ?, ?)", _positions(cursors, gone=False))

    def close(self) -> None:
        """Closes the file. Committed work needs no closing to be safe."""
        self._closing()

    def _open(self) -> sqlite3.Connection:
        if self.path is None:
            return _connect(":memory:")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return _connect(str(self.path))
        except (sqlite3.DatabaseError, _ForeignError) as error:
            # "unable to open" is a matter of permission or a full disk, not of a bad file.
            if isinstance(error, sqlite3.OperationalError) and not self._unusable():
                return self._without_file(error)
            return self._set_aside(error)
        except OSError as error:
            return self._without_file(error)

    def _unusable(self) -> bool:
        assert self.path is not None  # noqa: S101  # only called for a file
        return self.path.is_file() and self.path.stat().st_size > 0 and not _is_sqlite(self.path)

    def _set_aside(self, error: Exception) -> sqlite3.Connection:
        assert self.path is not None  # noqa: S101  # only called for a file
        aside = self.path.with_name(f"{self.path.name}.set-aside-{time.time_ns()}")
        try:
            self.path.rename(aside)
            for suffix in ("-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    self.path.with_name(self.path.name + suffix).rename(aside.with_name(aside.name + suffix))
            self.set_aside += 1
            _log.error("state file %s is unusable (%s); set aside as %s", self.path, error, aside.name)
            return _connect(str(self.path))
        except (OSError, sqlite3.Error) as second:
            return self._without_file(second)

    def _without_file(self, error: Exception) -> sqlite3.Connection:
        _log.error("state file %s cannot be used (%s); keeping state in memory", self.path, error)
        self.path = None
        return _connect(":memory:")


class _ForeignError(Exception):
    """A sound SQLite file that another program, or another version of this one, wrote."""


def _connect(target: str) -> sqlite3.Connection:
    db = sqlite3.connect(target, timeout=5, isolation_level=None, check_same_thread=False)
    try:
        _prepare(db)
    except BaseException:
        db.close()
        raise
    return db


def _prepare(db: sqlite3.Connection) -> None:
    owner = tuple(db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    if owner == (0, 0) and not db.execute("SELECT 1 FROM sqlite_schema").fetchone():
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA application_id = {_APPLICATION}")
        db.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {_VERSION}; COMMIT;")
    elif owner != (_APPLICATION, _VERSION):
        raise _ForeignError(f"application and version are {owner}, expected {(_APPLICATION, _VERSION)}")
    elif (found := db.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
        raise sqlite3.DatabaseError(found)
    # With a write-ahead log this outlives a killed process; a power cut may lose the last transactions, whole.
    db.execute("PRAGMA synchronous = NORMAL")


def _is_sqlite(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    except OSError:
        return True  # it cannot be told, so it is not renamed


def _positions(
    cursors: Mapping[tuple[str, str], bytes | None], *, gone: bool
) -> Iterable[tuple[str | bytes | None, ...]]:
    if gone:
        return [key for key, payload in cursors.items() if payload is None]
    return [(*key, payload) for key, payload in cursors.items() if payload is not None]


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
