"""A start without a start: everything that a configuration names is looked at, and nothing begins to work."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, NamedTuple

from prefix_cache_exporter.documents import DocumentError
from prefix_cache_exporter.engine.maps import load_maps
from prefix_cache_exporter.labels import Limits
from prefix_cache_exporter.mistakes import Mistakes
from prefix_cache_exporter.recorder import Recorder
from prefix_cache_exporter.release import read_release_file
from prefix_cache_exporter.release_board import ReleaseBoard
from prefix_cache_exporter.state import Store
from prefix_cache_exporter.web.toolkit import load_web_config

from .posts import check_map_folders, posts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from prefix_cache_exporter.config.model import ClientTls, Config, ReleaseSpec


class Note(NamedTuple):
    """What is no mistake, and good to know.

    Attributes:
        place: where it stands in the configuration.
        text: what it is.
    """

    place: str
    text: str


def rehearse(config: Config) -> list[Note]:
    """Loads everything that a configuration names, without beginning to work or touching state.

    A release file may come later, as `serve` waits for it: one that is not there is noted, one that is must be right.

    Raises:
        DocumentError: for all mistakes.
    """
    wrong = Mistakes()
    _load(config, wrong)
    for number, engine in enumerate(config.engines):
        at = f"engines[{number}]"
        if engine.bearer_token_file is not None:
            with wrong:
                _readable(engine.bearer_token_file, config.origin, f"{at}.bearer_token_file")
        _tls(engine.tls, config.origin, f"{at}.tls", wrong)
    notes = [note for place, spec in _releases(config) for note in _release(place, spec, wrong)]
    wrong.refuse()
    return notes


def _load(config: Config, wrong: Mistakes) -> None:
    """What is read with the configuration, also where no source makes use of it; what is wrong twice is told once."""
    recorder = Recorder(Store(None), Limits())
    with wrong:
        posts(config, recorder, ReleaseBoard(recorder), lambda _: None)
    recorder.close()
    if config.web.config_file is not None:
        with wrong:
            load_web_config(config.web.config_file)
    if config.prices.files or config.inventory.file or config.maps.folders:
        _load_facts(config, wrong)


def _load_facts(config: Config, wrong: Mistakes) -> None:
    # A third of the program, which a sidecar without usage logs need not import.
    from prefix_cache_exporter.usage.inventory import load_inventory  # noqa: PLC0415  # with facts of a user alone
    from prefix_cache_exporter.usage.maps.book import MapBook  # noqa: PLC0415  # with facts of a user alone
    from prefix_cache_exporter.usage.prices.book import PriceBook  # noqa: PLC0415  # with facts of a user alone

    with wrong:
        PriceBook.load(config.prices.files, currency=config.prices.currency)
    if config.inventory.file is not None:
        with wrong:
            load_inventory(config.inventory.file)
    with wrong:
        check_map_folders(config)
        with wrong:
            load_maps(config.maps.of("vllm"))
        with wrong:
            MapBook(config.maps.of("usage"))


def _tls(tls: ClientTls, file: str, at: str, wrong: Mistakes) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if tls.ca_file is not None:
        with wrong:
            _readable(tls.ca_file, file, f"{at}.ca_file")
            try:
                context.load_verify_locations(tls.ca_file)
            except ssl.SSLError as error:
                raise DocumentError(file, f"{at}.ca_file", str(tls.ca_file), "PEM certificates") from error
    if tls.cert_file is not None:
        with wrong:
            _readable(tls.cert_file, file, f"{at}.cert_file")
            if tls.key_file is not None:
                _readable(tls.key_file, file, f"{at}.key_file")
            try:
                # An encrypted key must fail here, not ask for its password on a terminal.
                context.load_cert_chain(tls.cert_file, tls.key_file, password=lambda: "")
            except (ssl.SSLError, ValueError) as error:
                got = f"{tls.cert_file} and {tls.key_file or 'no key_file'} that do not fit"
                raise DocumentError(file, at, got, "a PEM certificate and its unencrypted key") from error


def _releases(config: Config) -> Iterator[tuple[str, ReleaseSpec]]:
    yield "release.file", config.release
    for number, engine in enumerate(config.engines):
        yield f"engines[{number}].release.file", engine.release
    for number, source in enumerate(config.usage):
        yield f"usage[{number}].release.file", source.release


def _release(place: str, spec: ReleaseSpec, wrong: Mistakes) -> Iterator[Note]:
    if spec.file is None:
        return
    with wrong:
        try:
            spec.file.stat()
        except FileNotFoundError:
            until = "no release is in force" if spec.template is None else "what stands beside it is in force"
            yield Note(place, f"{spec.file} is not there yet; until it is, {until}")
            return
        except OSError:
            pass  # reading it says what is wrong
        read_release_file(spec.file)


def _readable(named: Path, file: str, place: str) -> None:
    try:
        named.open("rb").close()
    except OSError as error:
        got = f"{named} ({(error.strerror or 'an error').lower()})"
        raise DocumentError(file, place, got, "a readable file") from error
