"""Releases, and the exporter's own health."""

from __future__ import annotations

from .family import Family

_RELEASE = ("source", "provider", "model", "template", "template_revision")

RELEASE = (
    Family(
        "release_info",
        "prefix_cache_release_info",
        "info",
        "1",
        "What is pinned together in a release.",
        (
            *_RELEASE,
            "tokenizer_revision",
            "model_revision",
            "release_fingerprint",
            "leading_fingerprint",
            "predecessor_revision",
        ),
    ),
    Family(
        "release_in_force",
        "prefix_cache_release_in_force",
        "info",
        "1",
        "The release that engine increases and records without a revision of their own are credited to.",
        ("source", "template", "template_revision"),
    ),
    Family(
        "release_first_traffic_timestamp_seconds",
        "prefix_cache_release_first_traffic_timestamp_seconds",
        "gauge",
        "seconds",
        "When the first traffic of a revision was seen here, in seconds since 1970.",
        _RELEASE,
    ),
    Family(
        "release_cold_window_seconds",
        "prefix_cache_release_cold_window_seconds",
        "gauge",
        "seconds",
        "How long after its first traffic a revision is expected to be cold, where the release says so.",
        _RELEASE,
    ),
    Family(
        "release_predicted_population_hit_ratio",
        "prefix_cache_release_predicted_population_hit_ratio",
        "gauge",
        "ratio",
        "Population hit ratio predicted for a warm revision, where the release says so.",
        _RELEASE,
    ),
    Family(
        "release_file_valid",
        "prefix_cache_release_file_valid",
        "gauge",
        "1",
        "1 if the release file was readable at the last look, 0 if its old content stands.",
        ("source",),
    ),
)

HEALTH = (
    Family(
        "build_info",
        "prefix_cache_exporter_build_info",
        "info",
        "1",
        "Version of the exporter.",
        ("version", "revision", "python_version"),
    ),
    Family(
        "config_last_reload_successful",
        "prefix_cache_exporter_config_last_reload_successful",
        "gauge",
        "1",
        "1 if the last reload of the configuration succeeded.",
        (),
    ),
    Family(
        "config_last_reload_success_timestamp_seconds",
        "prefix_cache_exporter_config_last_reload_success_timestamp_seconds",
        "gauge",
        "seconds",
        "When the configuration was last loaded, in seconds since 1970.",
        (),
    ),
    Family(
        "label_overflow",
        "prefix_cache_exporter_label_overflow",
        "counter",
        "increments",
        "Increments whose label value exceeded the bound and went to `other`, by label.",
        ("label",),
    ),
    Family(
        "series_overflow",
        "prefix_cache_exporter_series_overflow",
        "counter",
        "increments",
        "Increments that would have made a series above a family's bound and went to `other`, by family.",
        ("family",),
    ),
    Family(
        "series",
        "prefix_cache_exporter_series",
        "gauge",
        "series",
        "Ledger series held, exposed and expired together.",
        (),
    ),
    Family(
        "state_writes",
        "prefix_cache_exporter_state_writes",
        "counter",
        "writes",
        "Transactions committed to the state file.",
        (),
    ),
    Family(
        "state_write_failures",
        "prefix_cache_exporter_state_write_failures",
        "counter",
        "writes",
        "Transactions that could not be committed to the state file.",
        (),
    ),
    Family(
        "state_last_write_timestamp_seconds",
        "prefix_cache_exporter_state_last_write_timestamp_seconds",
        "gauge",
        "seconds",
        "When state was last written, in seconds since 1970.",
        (),
    ),
    Family(
        "state_set_aside",
        "prefix_cache_exporter_state_set_aside",
        "counter",
        "files",
        "State files found corrupt or foreign at start and renamed.",
        (),
    ),
    Family(
        "internal_errors",
        "prefix_cache_exporter_internal_errors",
        "counter",
        "errors",
        "Errors of the exporter itself that a worker survived, by worker.",
        ("worker",),
    ),
)

FAMILIES = (*RELEASE, *HEALTH)
