"""Wheels and editable installs with compiled modules, and without where there is no compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from prefix_cache_exporter.usage.lane import compiled

ROOT = Path(__file__).parents[1]
PLACE = "prefix_cache_exporter/usage/lane/compiled"
NAMES = {f"{PLACE}/{name}{sysconfig.get_config_var('EXT_SUFFIX')}" for name in ("_adding", "_recent")}
HAS_COMPILER = bool(shutil.which("cc")) and Path(sysconfig.get_path("include"), "Python.h").exists()
needs_compiler = pytest.mark.skipif(not HAS_COMPILER, reason="no compiler or no headers of this Python here")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The package as a fresh download has it."""
    folder = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE", "hatch_build.py"):
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / "metric_maps", folder / "metric_maps")
    shutil.copytree(ROOT / "exporter", folder / "exporter", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    return folder


def build(source, folder, **environment):
    return subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)],
        cwd=source,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def wheel(folder):
    (file,) = folder.glob("*.whl")
    return file.name, set(zipfile.ZipFile(file).namelist())


@pytest.mark.skipif(not HAS_COMPILER, reason="no compiler or no headers of this Python here")
def test_where_there_is_a_compiler_the_package_is_compiled():
    assert compiled.BUILT, "make test sets up what is tested: run scripts/setup dev"


@needs_compiler
def test_a_wheel_holds_what_was_compiled_for_this_interpreter(source, tmp_path):
    done = build(source, tmp_path, PREFIX_CACHE_EXPORTER_COMPILED="required")
    assert done.returncode == 0, done.stderr
    name, files = wheel(tmp_path)
    assert f"-cp{sys.version_info.major}{sys.version_info.minor}-" in name
    assert {file for file in files if file.endswith((".so", ".c"))} == NAMES
    assert {f"{PLACE}/__init__.py", f"{PLACE}/_adding.pyi", "prefix_cache_exporter/py.typed"} <= files
    assert not list((source / "exporter").rglob("*.so"))


@pytest.mark.parametrize("environment", [{"PREFIX_CACHE_EXPORTER_COMPILED": "none"}, {"CC": "/no/compiler/here"}])
def test_without_a_compiler_the_wheel_is_for_every_interpreter(source, tmp_path, environment):
    done = build(source, tmp_path, **environment)
    assert done.returncode == 0, done.stderr
    name, files = wheel(tmp_path)
    assert name.endswith("-py3-none-any.whl")
    assert not [file for file in files if file.endswith((".so", ".c"))]
    assert ("slower on usage logs" in done.stdout + done.stderr) == ("CC" in environment)


def test_what_is_required_and_cannot_be_fails(source, tmp_path):
    done = build(source, tmp_path, PREFIX_CACHE_EXPORTER_COMPILED="required", CC="/no/compiler/here")
    assert done.returncode != 0
    assert "/no/compiler/here" in done.stderr
    assert not list(tmp_path.glob("*.whl"))


def test_a_wish_that_is_none_is_told(source, tmp_path):
    done = build(source, tmp_path, PREFIX_CACHE_EXPORTER_COMPILED="yes")
    assert done.returncode != 0
    assert "PREFIX_CACHE_EXPORTER_COMPILED: got 'yes', expected one of wanted, required, none" in done.stderr
