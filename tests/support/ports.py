"""A port on loopback that the operating system says is free."""

from __future__ import annotations

import socket


def free_port() -> int:
    """For servers that come back on the same port; others listen on port 0."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
