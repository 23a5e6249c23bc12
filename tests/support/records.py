"""Usage records for tests: only what the test is about is written down."""

from __future__ import annotations

from prefix_cache_exporter.usage.record import UsageRecord


def record(**fields) -> UsageRecord:
    """A settled success; `total`, `read`, `write`, `uncached`, `output` are its tokens; uncached is the rest."""
    total, read, write = fields.pop("total", None), fields.pop("read", None), fields.pop("write", None)
    known = total is not None and read is not None
    uncached = fields.pop("uncached", total - read - (write or 0) if known else None)
    defaults = {
        "id": None,
        "format": "test",
        "provider": "openai",
        "model": None,
        "time": None,
        "status": "success",
        "quality": "ok",
        "anomalies": (),
        "cache_write_by_ttl": {},
        "output_tokens": fields.pop("output", None),
    }
    return UsageRecord(
        **{
            **defaults,
            "total_input_tokens": total,
            "cache_read_tokens": read,
            "cache_write_tokens": write,
            "uncached_input_tokens": uncached,
            **fields,
        }
    )
