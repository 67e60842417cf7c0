"""Figures -> one HTML page that holds everything it needs: no network, no other file."""

from __future__ import annotations

import html
import json
from dataclasses import asdict
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

from visualization.figures.palette import DASHES, css_colors

if TYPE_CHECKING:
    from visualization.figures.figures import Figures

_DIGITS = 6
_SCRIPTS = ("marks.js", "limits.js", "bars.js", "curves.js", "strips.js", "overview.js", "page.js")


def page(figures: Figures) -> str:
    """The page as text."""
    known = {**_short(asdict(figures)), "dashes": DASHES}
    data = json.dumps(known, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Template(_template("page.html")).substitute(
        title=html.escape(figures.title),
        lead=f'<p class="lead">{html.escape(figures.lead)}</p>' if figures.lead else "",
        footer=html.escape(figures.footer),
        style=Template(_template("page.css")).substitute(palette=css_colors()),
        data=data.replace("<", "\\u003c"),  # nothing in a name may end the script
        script="\n".join(map(_template, _SCRIPTS)),
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
