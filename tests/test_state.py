from __future__ import annotations

import logging
import os
import sqlite3
import stat
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from prefix_cache_exporter import measures
from prefix_cache_exporter.labels import Limits
from prefix_cache_exporter.ledger import Ledger
from prefix_cache_exporter.state import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PROMPT = measures.ENGINE["prompt_tokens"]


def ledger() -> Ledger:
    return Ledger(Limits(), hold_seconds=0, expire_seconds=60)


def filled(path: Path) -> None:
    book, store = ledger(), Store(path)
    book.add(PROMPT, {"source": "a"}, {"": 5}, now=1.0)
    store.write(book, {("log", "x"): b"1"})
    store.close()


def tokens(book: Ledger) -> list[int | float]:
    return [one.parts[""] for one in book.series.values()]


def test_what_was_written_is_there_again(tmp_path: Path) -> None:
    filled(tmp_path / "state.db")
    book = ledger()
    assert Store(tmp_path / "state.db").load(book) == {("log", "x"): b"1"}
    assert tokens(book) == [5]
    assert [(name[0], one.touched, one.first_traffic) for name, one in book.releases.items()] == [("a", 1.0, 1.0)]


def test_a_store_that_nobody_closes_is_closed_with_its_last_reference():
    store = Store(None)
    connection = store._db
    del store
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


def test_missing_folders_are_made(tmp_path: Path) -> None:
    filled(tmp_path / "new" / "folder" / "state.db")
    assert (tmp_path / "new" / "folder" / "state.db").exists()


def garbage(path: Path) -> None:
    path.write_bytes(b"not a database at all, but long enough to be looked at" * 50)


def torn(path: Path) -> None:
    filled(path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(size - 4096))


def foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE bookmarks (url TEXT)")


def newer(path: Path) -> None:
    filled(path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize("spoil", [garbage, torn, foreign, newer])
def test_an_unusable_file_is_set_aside_and_never_fatal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, spoil: Callable[[Path], None]
) -> None:
    path = tmp_path / "state.db"
    spoil(path)
    before = path.read_bytes()
    with caplog.at_level(logging.ERROR):
        store = Store(path)
    assert store.set_aside == 1
    assert store.load(ledger()) == {}
    aside = [
        file for file in tmp_path.iterdir() if ".set-aside-" in file.name and not file.name.endswith(("wal", "shm"))
    ]
    assert [file.read_bytes() for file in aside] == [before]
    assert "is unusable" in caplog.text
    assert "set aside as state.db.set-aside-" in caplog.text
    store.close()
    filled(path)  # and the fresh file works


def test_an_empty_file_is_taken_as_new(tmp_path: Path) -> None:
    (tmp_path / "state.db").touch()
    filled(tmp_path / "state.db")
    assert [file.name for file in tmp_path.iterdir() if "aside" in file.name] == []


def test_a_folder_that_cannot_be_made_leaves_state_in_memory(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    with caplog.at_level(logging.ERROR):
        store = Store(tmp_path / "file" / "state.db")
    assert store.path is None
    assert "keeping state in memory" in caplog.text
    store.write(ledger(), {("log", "x"): b"1"})


def test_a_path_that_is_a_folder_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "state.db").mkdir()
    with caplog.at_level(logging.ERROR):
        store = Store(tmp_path / "state.db")
    assert (store.path, store.set_aside) == (None, 0)
    assert stat.S_ISDIR((tmp_path / "state.db").stat().st_mode)


def test_a_bad_file_that_cannot_be_renamed_leaves_state_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    garbage(tmp_path / "state.db")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.rename", refuse)
    with caplog.at_level(logging.ERROR):
        store = Store(tmp_path / "state.db")
    assert (store.path, store.set_aside) == (None, 0)
    assert "Permission denied" in caplog.text


def test_families_that_the_catalogue_no_longer_has_are_left_out(tmp_path: Path) -> None:
    filled(tmp_path / "state.db")
    with closing(sqlite3.connect(tmp_path / "state.db")) as db, db:
        db.execute("INSERT INTO series VALUES ('prefix_cache_gone', '[\"a\"]', '{\"\": 1}', '{}', 0)")
        db.execute("INSERT INTO series VALUES (?, '[\"too\", \"few\"]', '{\"\": 1}', '{}', 0)", (PROMPT.name,))
    book = ledger()
    Store(tmp_path / "state.db").load(book)
    assert tokens(book) == [5]


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    filled(tmp_path / "state.db")
    store, book = Store(tmp_path / "state.db"), ledger()
    store.load(book)
    book.add(PROMPT, {"source": "a"}, {"": 1}, now=2.0)
    with pytest.raises(sqlite3.Error):
        store.write(book, {("log", "x"): b"2", ("log", "y"): object()})  # type: ignore[dict-item]  # provokes the error
    fresh = ledger()
    assert Store(tmp_path / "state.db").load(fresh) == {("log", "x"): b"1"}
    assert tokens(fresh) == [5]
