"""Figures -> one HTML page that holds everything it needs: no network, no other file."""

from __future__ import annotations

import html
import json
from dataclasses import asdict
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from visualization.figures import Figures

# Chosen apart from one another for normal sight and for protanopia, deuteranopia and tritanopia (a distance of 0.08 in
# Oklab at least), each with a contrast of 3 or more to its background.
LIGHT = ("#0b62c4", "#d1490c", "#0a4f3c", "#b56fd0", "#3c086b", "#806674", "#5b3291", "#55120b")
DARK = ("#5aa9ff", "#ff8a4c", "#9fe0c4", "#c65fc0", "#b24b0a", "#567480", "#ede361", "#adb7d2")
_DIGITS = 6


def page(figures: Figures) -> str:
    """The page as text."""
    palette = "\n".join(
        f"  --run-{n}: light-dark({light}, {dark});" for n, (light, dark) in enumerate(zip(LIGHT, DARK, strict=True))
    )
    data = json.dumps(_short(asdict(figures)), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Template(_template("page.html")).substitute(
        title=html.escape(figures.title),
        lead=f'<p class="lead">{html.escape(figures.lead)}</p>' if figures.lead else "",
        footer=html.escape(figures.footer),
        style=Template(_template("page.css")).substitute(palette=palette),
        data=data.replace("<", "\\u003c"),  # nothing in a name may end the script
        script=_template("page.js"),
    )


def _template(name: str) -> str:
    return (files("visualization") / "templates" / name).read_text(encoding="utf-8")


def _short(value: Any) -> Any:
    """The same with numbers as long as a reader can use."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {key: _short(each) for key, each in value.items()}
    return [_short(each) for each in value] if isinstance(value, (list, tuple)) else value
