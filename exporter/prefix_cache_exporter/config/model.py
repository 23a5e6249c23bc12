"""The configuration as the program sees it. Each option is described in `metric_maps/schema/config.schema.json`."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # msgspec reads annotations at run time
from pathlib import Path  # noqa: TC003  # likewise
from types import MappingProxyType
from typing import Literal

import msgspec

from prefix_cache_exporter.labels import DEFAULT_LIMITS

DEFAULT_PORT = 10910
"""Default port. Prometheus's list of exporter ports is full from 9100 to 9999, goes on at 10000 and is not here yet.

https://github.com/prometheus/prometheus/wiki/Default-port-allocations, and for its state
https://github.com/iits-consulting/otc-prometheus-exporter/pull/16 and https://github.com/natrontech/pbs-exporter/pull/33
"""


def _nothing() -> Mapping[str, str]:
    return MappingProxyType({})


def _label_bounds() -> Mapping[str, int]:
    return MappingProxyType(DEFAULT_LIMITS)


class WebSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The exporter's own pages."""

    listen_address: tuple[str, ...] = (f":{DEFAULT_PORT}",)
    telemetry_path: str = "/metrics"
    config_file: Path | None = None
    external_url: str | None = None
    route_prefix: str | None = None


class StateSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The durable ledger and log positions; times in seconds."""

    path: Path | None = None
    hold_seconds: float = 30
    expire_seconds: float = 86400
    commit_seconds: float = 1
    catch_up_seconds: float = 60


class ShutdownSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The end of the process."""

    grace_seconds: float = 20


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of what becomes a series."""

    series: int = 10_000
    label_length: int = 200
    labels: Mapping[str, int] = msgspec.field(default_factory=_label_bounds)


class ReleaseSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What is pinned together, or the file that says so; None where nothing does."""

    file: Path | None = None
    template: str | None = None
    template_revision: str | None = None
    tokenizer_revision: str | None = None
    model_revision: str | None = None
    release_fingerprint: str | None = None
    leading_fingerprint: str | None = None
    predecessor_revision: str | None = None
    predicted_population_hit_ratio: float | None = None
    cold_window_seconds: float | None = None

    def __bool__(self) -> bool:
        return any(getattr(self, name) is not None for name in self.__struct_fields__)


class ClientTls(msgspec.Struct, frozen=True, kw_only=True):
    """How to speak TLS to a server that is polled."""

    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    server_name: str | None = None
    insecure_skip_verify: bool = False


class EngineSource(msgspec.Struct, frozen=True, kw_only=True):
    """One vLLM server; times in seconds."""

    name: str
    url: str
    provider: str = "vllm"
    engine_version: str | None = None
    name_style: str = "auto"
    poll_seconds: float = 5
    timeout_seconds: float = 4
    body_limit_bytes: int = 16 * 2**20
    stale_seconds: float = 60
    bearer_token_file: Path | None = None
    tls: ClientTls = ClientTls()
    models: Mapping[str, str] = msgspec.field(default_factory=_nothing)
    release: ReleaseSpec = ReleaseSpec()


class Namespaces(msgspec.Struct, frozen=True, kw_only=True):
    """What may become a `namespace` label."""

    allow: tuple[str, ...] = ()
    buckets: int | None = None
    key_file: Path | None = None


class UsageSource(msgspec.Struct, frozen=True, kw_only=True):
    """One usage log; times in seconds."""

    name: str
    format: str
    paths: tuple[str, ...]
    provider: str | None = None
    input_includes_cache: bool | None = None
    line_limit_bytes: int = 4 * 2**20
    settle_seconds: float = 10
    dedupe_records: int = 100_000
    models: Mapping[str, str] = msgspec.field(default_factory=_nothing)
    fields: Mapping[str, str] = msgspec.field(default_factory=_nothing)
    namespaces: Namespaces = Namespaces()
    ttft_bands: tuple[int, ...] = (512, 2048, 8192, 32768, 131072)
    fingerprint_window_seconds: float = 600
    quarantine_file: Path | None = None
    block_size_tokens: int | None = None
    release: ReleaseSpec = ReleaseSpec()


class MapSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Maps of the user's own, laid out like the shipped ones."""

    folders: tuple[Path, ...] = ()

    def of(self, kind: Literal["vllm", "usage"]) -> tuple[Path, ...]:
        """The folders of one kind of map. One may lack a kind; of one that is not there its reader complains."""
        return tuple(inner for folder in self.folders if (inner := folder / kind).is_dir() or not folder.is_dir())


class PriceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What tokens cost."""

    files: tuple[Path, ...] = ()
    currency: str = "USD"


class InventorySettings(msgspec.Struct, frozen=True, kw_only=True):
    """The registered shared prefixes."""

    file: Path | None = None


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The whole configuration; everything has a default.

    Attributes:
        origin: what an error names as the file; no part of what is configured.
    """

    web: WebSettings = WebSettings()
    state: StateSettings = StateSettings()
    shutdown: ShutdownSettings = ShutdownSettings()
    limits: Limits = Limits()
    release: ReleaseSpec = ReleaseSpec()
    engines: tuple[EngineSource, ...] = ()
    usage: tuple[UsageSource, ...] = ()
    maps: MapSettings = MapSettings()
    prices: PriceSettings = PriceSettings()
    inventory: InventorySettings = InventorySettings()
    origin: str = "configuration"

    def __eq__(self, other: object) -> bool:
        names = (name for name in self.__struct_fields__ if name != "origin")
        return isinstance(other, Config) and all(getattr(self, name) == getattr(other, name) for name in names)

    __hash__ = None  # type: ignore[assignment]  # it holds mappings
