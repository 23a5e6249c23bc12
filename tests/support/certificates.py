"""Certificates made on the spot with Debian's openssl: an authority, a server and two clients."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def make_authority(folder: Path, name: str) -> Path:
    _openssl(
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
        "-subj", f"/CN={name}", "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem",
        "-addext", "keyUsage=critical,keyCertSign",
    )  # fmt: skip
    return folder / f"{name}.pem"


def make_certificate(folder: Path, name: str, authority: str, names: str = "IP:127.0.0.1,DNS:localhost") -> Path:
    """A certificate signed by an authority made before; its key is beside it as `<name>.key`."""
    _openssl(
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
        "-subj", f"/CN={name}", "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem",
        "-CA", folder / f"{authority}.pem", "-CAkey", folder / f"{authority}.key",
        "-addext", f"subjectAltName={names}", "-addext", "basicConstraints=critical,CA:FALSE",
    )  # fmt: skip
    return folder / f"{name}.pem"


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
