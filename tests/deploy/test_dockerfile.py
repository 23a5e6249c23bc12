"""No container engine is needed: the Dockerfile's own steps run as plain commands into an empty prefix."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()
STAGES = re.split(r"^FROM ", DOCKERFILE, flags=re.MULTILINE)[1:]
NOBODY = 10001


def steps(stage: str, word: str) -> list[str]:
    joined = stage.replace("\\\n", " ")
    return [line.removeprefix(f"{word} ").strip() for line in joined.splitlines() if line.startswith(f"{word} ")]


def test_two_stages_and_the_last_one_builds_nothing() -> None:
    assert len(STAGES) == 2
    assert steps(STAGES[1], "RUN") == []
    assert steps(STAGES[1], "COPY") == ["--from=build /opt/prefix-cache-exporter /opt/prefix-cache-exporter"]


def test_the_user_is_a_number_that_is_not_root() -> None:
    assert steps(STAGES[1], "USER") == [f"{NOBODY}:{NOBODY}"]


def test_wheels_are_locked_by_hash() -> None:
    installs = [step for step in steps(STAGES[0], "RUN") if "pip install" in step]
    assert all("--require-hashes" in step or "--no-deps" in step for step in installs)


def run(command: list[str] | str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def python_for_everyone() -> Path | None:
    """A Python that another user may run: some are installed where only their owner can look."""
    for python in (Path(sys.base_prefix, "bin", "python3").resolve(), Path("/usr/bin/python3").resolve()):
        if python.exists() and all(folder.stat().st_mode & 0o001 for folder in python.parents):
            return python
    return None


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that another user may look into, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def copied(source: Path) -> None:
    """What the build stage's COPY lines bring in."""
    source.mkdir()
    for copy in steps(STAGES[0], "COPY"):
        *names, target = copy.split()
        for name in names:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, source / target)
            else:
                shutil.copy(ROOT / name, source / name)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run a command under another uid")
def test_the_steps_make_a_prefix_that_works_for_another_user_with_nothing_writable(place: Path) -> None:
    python = python_for_everyone()
    assert python is not None, "no Python here that another user may run: install python3 and python3-venv"
    (place / "bin").mkdir()
    (place / "bin" / "python").symlink_to(python)
    source, prefix, state = place / "src", place / "prefix", place / "state"
    copied(source)
    environment = {"PATH": f"{place / 'bin'}:/usr/bin:/bin", "PREFIX": str(prefix), "HOME": str(place)}
    for step in steps(STAGES[0], "RUN"):
        done = run(step, shell=True, cwd=source, env=environment)
        assert done.returncode == 0, f"{step}\n{done.stderr}"
    shutil.rmtree(source)  # nothing may lean on the build tree
    state.mkdir()
    os.chown(state, NOBODY, NOBODY)

    def as_nobody(*arguments: str) -> subprocess.CompletedProcess[str]:
        bare = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [str(prefix / "bin" / "prefix-cache-exporter"), *arguments]
        return run(command, cwd="/", env=bare, user=NOBODY, group=NOBODY, extra_groups=[])

    assert "prefix-cache-exporter" in as_nobody("--version").stdout
    look = "import sysconfig; print(sysconfig.get_path('include'))"
    headers = Path(run([str(python), "-c", look]).stdout.strip(), "Python.h")  # images of Python have them
    assert bool(list(prefix.rglob("_adding.*.so"))) == headers.exists()
    config = place / "config.yaml"
    config.write_text(f"state: {{path: {state}/state.db}}\n")
    checked = as_nobody("check", "config", str(config))
    assert (checked.returncode, checked.stderr) == (0, "")
    listed = as_nobody("maps", "list")
    assert listed.returncode == 0, listed.stderr
    assert "0.32.0" in listed.stdout
    assert [path for path in prefix.rglob("*") if path.lstat().st_uid == NOBODY] == []
