"""Markup as elements, never as text: what a label says can then not become anything but text."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, tostring

if TYPE_CHECKING:
    from collections.abc import Sequence


def tag(name: str, /, *children: Element | str | None, **attributes: str | float | None) -> Element:
    """One element. `class_` is `class`; underscores in attribute names are dashes; None is left out."""
    names = {key.rstrip("_").replace("_", "-"): str(value) for key, value in attributes.items() if value is not None}
    element = Element(name, names)
    for child in children:
        if isinstance(child, Element):
            element.append(child)
        elif child is not None:
            _append_text(element, printable(child))
    return element


def document(element: Element) -> bytes:
    """A whole HTML document in UTF-8."""
    markup: bytes = tostring(element, encoding="utf-8", method="html")
    return b"<!doctype html>\n" + markup


def sparkline(values: Sequence[float | None], title: str) -> Element:
    """A line of ratios from 0 to 1 on a fixed scale; a gap where there was no traffic."""
    width, height, edge = 120, 28, 2
    step = (width - 2 * edge) / max(len(values) - 1, 1)
    strokes: list[list[str]] = [[]]
    for place, value in enumerate(values):
        if value is None:
            strokes.append([])
        else:
            y = height - edge - min(value, 1) * (height - 2 * edge)
            strokes[-1].append(f"{edge + place * step:.1f},{y:.1f}")
    lines = [_stroke(points, edge) for points in strokes if points]
    return tag("svg", tag("title", title), *lines, class_="spark", viewBox=f"0 0 {width} {height}", role="img")


def _stroke(points: list[str], radius: float) -> Element:
    if len(points) == 1:
        x, y = points[0].split(",")
        return tag("circle", cx=x, cy=y, r=radius)
    return tag("polyline", points=" ".join(points))


def printable(text: str) -> str:
    """Text without what no document may hold: control characters and halves of characters."""
    return "".join(
        char if char in "\t\n" or (char >= " " and not "\ud800" <= char <= "\udfff") else "\ufffd" for char in text
    )


def _append_text(element: Element, text: str) -> None:
    if len(element):
        element[-1].tail = (element[-1].tail or "") + text
    else:
        element.text = (element.text or "") + text
