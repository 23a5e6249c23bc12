"""Checks of JSON against grafana-foundation-sdk's models, whose decoder drops unknown keys and trusts every type."""

from __future__ import annotations

import enum
import json
import types
import typing
import warnings
from typing import TYPE_CHECKING, Any

with warnings.catch_warnings():
    # It would rather have the second form, which file provisioning refuses (grafana/grafana#122663).
    warnings.filterwarnings("ignore", "Prefer using dashboardv2", DeprecationWarning)
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.cog.plugins import register_default_plugins
    from grafana_foundation_sdk.models import dashboard as dashboards
    from grafana_foundation_sdk.models import heatmap, prometheus, stat, table, timeseries, xychart

if TYPE_CHECKING:
    from collections.abc import Iterator

PANELS: dict[str, Any] = {
    "heatmap": heatmap,
    "stat": stat,
    "table": table,
    "timeseries": timeseries,
    "xychart": xychart,
}
"""The panel kinds that the pack uses; another one is an error until its model stands here."""
register_default_plugins()


def problems(document: Any) -> list[str]:
    """What the models do not know or would hold to be of another type, in a whole dashboard."""
    decoded = dashboards.Dashboard.from_json(document)
    found = [*lost(document, _encoded(decoded)), *mistyped(decoded, dashboards.Dashboard)]
    for panel in decoded.panels or []:
        for one in [panel, *(getattr(panel, "panels", None) or [])]:
            if one.type_val != "row":
                found += _panel(one)
    return found


def _panel(panel: Any) -> Iterator[str]:
    if panel.type_val not in PANELS:
        yield f"{panel.title}: no model for {panel.type_val}"
        return
    module = PANELS[panel.type_val]
    yield from mistyped(panel.options, module.Options, f"{panel.title}: options")
    custom = panel.field_config.defaults.custom
    if custom is not None:
        yield from mistyped(custom, module.FieldConfig, f"{panel.title}: custom")
    for target in panel.targets:
        yield from mistyped(target, prometheus.Dataquery, f"{panel.title}: target {target.ref_id}")


def lost(given: Any, back: Any, path: str = "$") -> Iterator[str]:
    """Keys and values that decoding and encoding did not give back."""
    if isinstance(given, dict) and isinstance(back, dict):
        for key, value in given.items():
            if key in back:
                yield from lost(value, back[key], f"{path}.{key}")
            elif value is not None:
                yield f"{path}.{key}: unknown"
    elif isinstance(given, list) and isinstance(back, list) and len(given) == len(back):
        for place, (one, other) in enumerate(zip(given, back, strict=True)):
            yield from lost(one, other, f"{path}[{place}]")
    elif given != back:
        yield f"{path}: {given!r} came back as {back!r}"


def mistyped(value: Any, hint: Any, path: str = "$") -> Iterator[str]:
    """Values that are not what their model says."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in {typing.Union, types.UnionType}:
        tried = [list(mistyped(value, one, path)) for one in arguments]
        if all(tried):
            # The alternative that got farthest is the one that was meant.
            yield from max(tried, key=lambda found: len(found[0].partition(": ")[0]))
    elif origin in {list, dict}:
        yield from _collection(value, origin, arguments, path)
    elif hasattr(hint, "from_json"):
        yield from _model(value, hint, path)
    elif not _is(value, hint):
        yield f"{path}: {value!r} is no {getattr(hint, '__name__', hint)}"


def _is(value: Any, hint: Any) -> bool:
    """Whether a value without parts is of a type."""
    if hint is object or hint is Any:
        return True
    if typing.get_origin(hint) is typing.Literal:
        return value in typing.get_args(hint)
    if issubclass(hint, enum.Enum):
        return value in {one.value for one in hint}
    if isinstance(value, bool):
        return hint is bool
    return isinstance(value, int | float if hint is float else hint)


def _model(value: Any, hint: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):  # some lists are handed on undecoded
        decoded = hint.from_json(value)
        yield from lost(value, _encoded(decoded), path)
        value = decoded
    if not isinstance(value, hint):
        yield f"{path}: {value!r} is no {hint.__name__}"
        return
    for name, one in typing.get_type_hints(type(value)).items():
        yield from mistyped(getattr(value, name, None), one, f"{path}.{name}")


def _collection(value: Any, origin: type, arguments: tuple[Any, ...], path: str) -> Iterator[str]:
    if not isinstance(value, origin):
        yield f"{path}: {value!r} is no {origin.__name__}"
        return
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in items:
        yield from mistyped(one, arguments[-1], f"{path}[{key}]")


def _encoded(value: Any) -> Any:
    return json.loads(json.dumps(value, cls=JSONEncoder))
