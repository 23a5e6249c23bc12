"""Resident memory as the kernel keeps it for a process's present program.

`ru_maxrss` is not that: a started process begins with the peak of the one that started it.
"""

from __future__ import annotations

from pathlib import Path


def resident(pid: int | str = "self", *, peak: bool = False) -> float:
    """Resident memory in MB, now or at its peak; 0 of a process that has ended."""
    name = "VmHWM:" if peak else "VmRSS:"
    try:
        lines = Path(f"/proc/{pid}/status").read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) for line in lines if line.startswith(name)), 0) / 1024
