"""`scripts/setup` on machines of paper: what is installed, who asks, and what it then says or does."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPILED = Path("exporter/prefix_cache_exporter/usage/lane/compiled")


class Machine:
    """A checkout with nothing set up, and programs that only write down how they were called."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin, self.calls = folder, folder / "bin", folder / "calls"
        (folder / "scripts").mkdir()
        self.bin.mkdir()
        self.calls.touch()
        shutil.copy(ROOT / "scripts" / "setup", folder / "scripts" / "setup")
        for name in ("pyproject.toml", "requirements.lock", "requirements-dev.lock", "hatch_build.py"):
            shutil.copy(ROOT / name, folder / name)
        (folder / COMPILED).mkdir(parents=True)
        for file in (ROOT / COMPILED).glob("*.[ch]"):
            shutil.copy(file, folder / COMPILED)
        self.program("cc", "true")
        self.program("id", "echo ${FAKE_UID:-1000}")
        self.program("apt-get", f'echo apt-get "$@" >> {self.calls}')
        self.program("dpkg-query", 'for last; do :; done; case " $INSTALLED " in *" $last "*) echo installed;; esac')
        pip = f'#!/bin/sh\\necho pip "$@" >> {self.calls}\\n'
        make = f"mkdir -p .venv/bin; printf '{pip}' > .venv/bin/python; chmod +x .venv/bin/python"
        answers = "*version_info*) exit ${TOO_OLD:-0};; *Python.h*) exit ${NO_HEADERS:-0};;"
        self.program("python", f'case "$*" in *venv\\ .venv) {make};; {answers} esac')

    def program(self, name: str, body: str) -> None:
        (self.bin / name).write_text(f"#!/bin/sh\n{body}\n")
        (self.bin / name).chmod(0o755)

    def setup(self, *arguments: str, **environment: str) -> tuple[int, str, list[str]]:
        """Exit code, what was said, and what was called since."""
        before = self.calls.read_text()
        done = subprocess.run(
            [self.folder / "scripts" / "setup", *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": f"{self.bin}:{os.defpath}", "PYTHON": "python", "INSTALLED": "python3-venv", **environment},
        )
        assert done.stdout == ""
        return done.returncode, done.stderr, self.calls.read_text().removeprefix(before).splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_second_run_finds_everything_there(machine):
    code, said, called = machine.setup("runtime")
    assert (code, said) == (0, "setup: installing requirements.lock\n")
    assert [call.split()[:4] for call in called] == [["pip", "-m", "pip", "install"]] * 2
    assert "--require-hashes -r requirements.lock" in called[0]
    assert machine.setup("runtime") == (0, "", [])


def test_what_develops_also_runs(machine):
    assert machine.setup("dev")[0] == 0
    assert machine.setup("runtime") == (0, "", [])


def test_another_lock_is_installed_anew(machine):
    machine.setup("runtime")
    with (machine.folder / "requirements.lock").open("a") as lock:
        lock.write("# newer\n")
    assert machine.setup("runtime")[1] == "setup: installing requirements.lock\n"


def test_who_may_not_install_is_told_the_line_and_stopped(machine):
    code, said, called = machine.setup("dev", "prometheus", "chromium", INSTALLED="chromium")
    assert (code, called) == (1, [])
    assert said == ("setup: needs Debian packages; run:\n  sudo apt-get install --no-install-recommends prometheus\n")


@pytest.mark.skipif(not Path("/usr/sbin/policy-rc.d").exists(), reason="a test must not write it; setup itself does")
def test_root_installs_without_being_asked(machine):
    code, said, called = machine.setup("runtime", "prometheus", FAKE_UID="0")
    assert (code, said.splitlines()[0]) == (0, "setup: installing prometheus")
    assert called[:2] == ["apt-get -qq update", "apt-get -qq install -y --no-install-recommends prometheus"]


def test_without_optional_packages_it_goes_on(machine):
    code, said, called = machine.setup("runtime", "--optional", "prometheus", "prometheus-alertmanager")
    assert code == 0
    assert "sudo apt-get install --no-install-recommends prometheus prometheus-alertmanager\n" in said
    assert len(called) == 2


@pytest.mark.parametrize(
    ("environment", "packages"), [({"CC": "/no/cc"}, "gcc libc6-dev"), ({"NO_HEADERS": "1"}, "python3-dev")]
)
def test_without_a_compiler_or_headers_it_goes_on(machine, environment, packages):
    code, said, called = machine.setup("runtime", **environment)
    assert code == 0
    assert f"setup: goes on without {packages}; to have them, run:\n" in said
    assert len(called) == 2
    assert machine.setup("runtime", **environment) == (0, "", [])


def test_other_c_is_compiled_anew(machine):
    machine.setup("runtime")
    (machine.folder / COMPILED / "_adding.c").write_text("int other;")
    assert machine.setup("runtime")[1] == "setup: installing requirements.lock\n"


def test_an_old_python_is_refused(machine):
    code, said, called = machine.setup("runtime", TOO_OLD="1")
    assert (code, called) == (1, [])
    assert said == "setup: python is older than 3.11: set PYTHON to a newer one\n"


def test_what_it_does_not_know(machine):
    assert machine.setup("nothing") == (2, "setup: expected runtime or dev, got nothing\n", [])
