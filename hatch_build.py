"""Builds the C of `usage/lane/compiled/` if it can: without a compiler the package does the same, slower on usage logs.

`PREFIX_CACHE_EXPORTER_COMPILED=required` makes a build fail that cannot have it, `=none` makes one that does not try.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext

PLACE = "prefix_cache_exporter/usage/lane/compiled"
WISH = "PREFIX_CACHE_EXPORTER_COMPILED"
WISHES = ("wanted", "required", "none")


class CompiledHook(BuildHookInterface[Any]):
    """Puts the extension modules into a wheel, or beside their sources for an editable install."""

    _folder: tempfile.TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds; see hatchling's interface for what is given.

        Raises:
            ValueError: the wish is none of `WISHES`.
            Exception: whatever the compiler came with, where it is required.
        """
        wish = os.environ.get(WISH, "wanted")
        if wish not in WISHES:
            raise ValueError(f"{WISH}: got {wish!r}, expected one of {', '.join(WISHES)}")
        if wish == "none":
            return
        sources = Path(self.root, "exporter", PLACE)
        try:
            built = compile_all(sources)
        except Exception as error:  # compilers, their absence and that of headers come with errors of many kinds
            if wish == "required":
                raise
            self.app.display_warning(f"goes on without compiled modules, slower on usage logs: {error}")
            return
        if version == "editable":
            for name, content in built.items():
                fresh = sources / f"{name}.new"
                fresh.write_bytes(content)
                fresh.replace(sources / name)  # one that is in use stays what it is
            return
        self._folder = tempfile.TemporaryDirectory()
        for name, content in built.items():
            file = Path(self._folder.name, name)
            file.write_bytes(content)
            build_data["force_include"][str(file)] = f"{PLACE}/{name}"
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002  # theirs
        """Clears up, once the wheel holds what was built."""
        if self._folder is not None:
            self._folder.cleanup()


def compile_all(sources: Path) -> dict[str, bytes]:
    """Every C file of a folder as an extension module: its file name, as this interpreter looks for it, and content."""
    extensions = [Extension(file.stem, [str(file)]) for file in sorted(sources.glob("*.c"))]
    with tempfile.TemporaryDirectory() as folder:
        command = build_ext(Distribution({"ext_modules": extensions}))
        command.build_lib = command.build_temp = folder
        command.ensure_finalized()
        command.run()
        return {Path(file).name: Path(file).read_bytes() for file in command.get_outputs()}
