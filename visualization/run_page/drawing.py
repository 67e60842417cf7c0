"""A figure as markup: its title, key and note, and the frame in which the page's script draws it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from visualization.run_page.markup import Markup, element, joined

if TYPE_CHECKING:
    from visualization.run_page.figure_types import Figure, Level, Trace

_FAR = 4.0  # a limit so many times above all that was measured is written, not drawn


def shown_levels(figure: Figure) -> tuple[Level, ...]:
    """The limits that are near enough to what was measured to be drawn."""
    most = max((value for trace in figure.traces for value in trace.values), default=0.0)
    return tuple(level for level in figure.levels if level.value <= _FAR * most)


def framed(figure: Figure, number: int) -> Markup:
    """The figure; ``number`` is that of its data, which the page's script draws."""
    named = list({trace.name: trace for trace in reversed(figure.traces)}.values())[::-1]
    shown = shown_levels(figure)
    far = [level.name for level in figure.levels if level not in shown]
    note = " ".join(filter(None, (figure.note, f"Far above: {', '.join(far)}." if far else "")))
    return element(
        "figure",
        element(
            "figcaption",
            element("h3", figure.title, element("small", figure.y.unit) if figure.y.unit else None),
            element("p", *map(_key, named), class_="key") if _needs_key(named, figure.title) else None,
        ),
        element("div", class_="frame", tabindex=0),
        element("p", note, class_="note") if note else None,
        class_="plot",
        data_figure=number,
        data_title=figure.title,
    )


def _needs_key(traces: list[Trace], title: str) -> bool:
    """Tells whether there are several, or one that the title does not name."""
    return len(traces) > 1 or any(trace.name.lower() not in title.lower() for trace in traces)


def _key(trace: Trace) -> Markup:
    return element(
        "span",
        element("i", class_=f"swatch {trace.kind}", style=f"--c:{_colour(trace)}"),
        joined(" ", trace.name),
    )


def _colour(trace: Trace) -> str:
    """The colour of a trace as a variable of the page."""
    return f"var(--run-{trace.colour})" if isinstance(trace.colour, int) else f"var(--{trace.colour})"
