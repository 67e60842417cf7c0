"""Figures -> one HTML page that holds everything it needs: no network, no other file."""

from __future__ import annotations

import html
from dataclasses import fields
from string import Template
from typing import TYPE_CHECKING

from visualization.figures.page_data import page_data, template
from visualization.figures.palette import DASHES, css_colors

if TYPE_CHECKING:
    from visualization.figures.figures import Figures

_SCRIPTS = ("marks.js", "limits.js", "bars.js", "curves.js", "strips.js", "overview.js", "page.js")


def page(figures: Figures) -> str:
    """The page as text."""
    return Template(template("page.html")).substitute(
        title=html.escape(figures.title),
        lead=f'<p class="lead">{html.escape(figures.lead)}</p>' if figures.lead else "",
        footer=html.escape(figures.footer),
        style=Template(template("page.css")).substitute(palette=css_colors()),
        data=page_data(**{each.name: getattr(figures, each.name) for each in fields(figures)}, dashes=DASHES),
        script="\n".join(map(template, _SCRIPTS)),
    )
