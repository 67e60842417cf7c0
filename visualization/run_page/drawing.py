"""A figure as markup: lines in an SVG that takes any width, and texts beside it that keep their size. Pure.

The SVG is stretched to its frame, and no line grows with it. So a page needs no script to be drawn, and fits a phone,
a desktop and paper.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from visualization.run_page.markup import Markup, element, joined
from visualization.run_page.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Iterator

    from visualization.run_page.figures import Figure, Level, Trace

SIDE = 1000  # of the SVG's own coordinates
_FAR = 4.0  # a limit so many times above all that was measured is told, not drawn
_MOST_ACROSS = 8
_NEAR = (0.025, 0.06)  # shares of a picture: what is nearer to a number that stands there gets none
_POINTS = ("dots", "squares", "rings")


def scales(figure: Figure) -> tuple[Scale, Scale]:
    """Both axes of a figure, with room for its limits."""
    xs = [x for trace in figure.traces for x, _ in trace.points]
    xs += [end for _, start, stop in figure.bands for end in (start, stop)]
    xs += figure.span or ()
    values = [value for trace in figure.traces for value in trace.values]
    values += [level.value for level in shown_levels(figure)]
    across = Scale(figure.x.scale, min(xs), max(*xs, min(xs) + 1e-9))
    return across, Scale.over(figure.y.scale, values)


def shown_levels(figure: Figure) -> list[Level]:
    """The limits that are near enough to what was measured to be drawn."""
    most = max((value for trace in figure.traces for value in trace.values), default=0.0)
    return [level for level in figure.levels if level.value <= _FAR * most]


def draw(figure: Figure, number: int) -> Markup:
    """The figure; ``number`` is that of its data, which the page's script reads."""
    across, up = scales(figure)
    named = list({trace.name: trace for trace in reversed(figure.traces)}.values())[::-1]
    far = [level.name for level in figure.levels if level not in shown_levels(figure)]
    note = " ".join(filter(None, (figure.note, f"Far above: {', '.join(far)}." if far else "")))
    return element(
        "figure",
        element(
            "figcaption",
            element("h3", figure.title, element("small", figure.y.unit) if figure.y.unit else None),
            element("p", *map(_key, named), class_="key") if _needs_key(named, figure.title) else None,
        ),
        element(
            "div",
            _svg(figure, across, up),
            *_ticks(figure, across, up),
            *_names(figure, across, up),
            element("i", class_="cross", hidden=True),
            class_="frame",
            tabindex=0,
        ),
        element("p", note, class_="note") if note else None,
        class_="plot",
        data_figure=number,
        data_title=figure.title,
    )


def _needs_key(traces: list[Trace], title: str) -> bool:
    """Tells whether there are several, or one that the title does not name."""
    return len(traces) > 1 or any(trace.name.lower() not in title.lower() for trace in traces)


def _svg(figure: Figure, across: Scale, up: Scale) -> Markup:
    told = f"{figure.title} ({figure.y.unit or 'number'}) by {figure.x.title.lower()}"
    return element(
        "svg",
        *(_rectangle(across.place(start), across.place(end)) for _, start, end in figure.bands[::2]),
        *(_rule("grid", 0, up.place(value), 1) for value, _ in up.ticks()),
        *(_rule(f"level {'missed' if level.missed else 'kept'}", 0, up.place(level.value), 1)
          for level in shown_levels(figure)),
        *(_trace(trace, across, up) for trace in figure.traces),
        viewBox=f"0 0 {SIDE} {SIDE}",
        preserveAspectRatio="none",
        role="img",
        aria_label=told,
    )  # fmt: skip


def _trace(trace: Trace, across: Scale, up: Scale) -> Markup:
    if trace.kind == "columns":
        d = "".join(_columns(trace, across, up))
    elif trace.kind in _POINTS:
        d = "".join(f"M{_x(across, x)},{_y(up, y)}h0" for x, y in trace.points if y is not None)
    else:
        d = "".join(_line(trace, across, up))
    lone = " lone" if len(trace.values) == 1 else ""
    return element("path", class_=f"trace {trace.kind} faint-{trace.faint}{lone}", style=f"--c:{colour(trace)}", d=d)


def _line(trace: Trace, across: Scale, up: Scale) -> Iterator[str]:
    """A line through the known points; one that stands alone is a dot."""
    pen = "M"
    for (x, y), following in zip(trace.points, [*trace.points[1:], None], strict=True):
        if y is None:
            pen = "M"
            continue
        yield f"{pen}{_x(across, x)},{_y(up, y)}"
        if pen == "M" and (following is None or following[1] is None):
            yield "h0"
        pen = "L"


def _columns(trace: Trace, across: Scale, up: Scale) -> Iterator[str]:
    """A column from each place to the next one."""
    bottom = _y(up, max(up.low, 0.0))
    for (x, y), (end, _) in pairwise(trace.points):
        if y:
            yield f"M{_x(across, x)},{bottom}V{_y(up, y)}H{_x(across, end)}V{bottom}Z"


def _ticks(figure: Figure, across: Scale, up: Scale) -> Iterator[Markup]:
    """The numbers along both axes, the last one across with its unit."""
    for value, text in up.ticks():
        yield element("span", text, class_="y", style=f"bottom:{100 * up.place(value):.2f}%")
    named = across.ticks(_MOST_ACROSS)
    for value, text in named:
        place = across.place(value)
        edge = " first" if place < 0.03 else " last" if place > 0.97 else ""
        unit = f" {figure.x.unit}" if figure.x.unit and value == named[-1][0] else ""
        yield element("span", text + unit, class_=f"x{edge}", style=f"left:{100 * place:.2f}%")


def _names(figure: Figure, across: Scale, up: Scale) -> Iterator[Markup]:
    """The names of limits, stretches and points, where they are."""
    for level in shown_levels(figure):
        mark = "✗" if level.missed else "✓"
        style = f"bottom:{100 * up.place(level.value):.2f}%"
        yield element(
            "span", f"{mark} {level.name}", class_=f"name {'missed' if level.missed else 'kept'}", style=style
        )
        if level.at is not None and across.low <= level.at <= across.high:
            where = f"{style};left:{100 * across.place(level.at):.2f}%"
            yield element("span", "◇", class_=f"at {'missed' if level.missed else 'kept'}", style=where)
    for name, start, end in figure.bands:
        width = 100 * (across.place(end) - across.place(start))
        style = f"left:{100 * across.place(start):.2f}%;width:{width:.2f}%"
        yield element("span", name, class_="band", style=style)
    taken: list[tuple[float, float]] = []
    for flag in figure.flags:
        x, y = across.place(flag.x), up.place(flag.y)
        if all(abs(x - left) > _NEAR[0] or abs(y - bottom) > _NEAR[1] for left, bottom in taken):
            taken.append((x, y))
            yield element("span", flag.text, class_="flag", style=f"left:{100 * x:.2f}%;bottom:{100 * y:.2f}%")


def _key(trace: Trace) -> Markup:
    swatch = element("i", class_=f"swatch {trace.kind}", style=f"--c:{colour(trace)}")
    return element("span", swatch, joined(" ", trace.name))


def colour(trace: Trace) -> str:
    """The colour of a trace as a variable of the page."""
    return f"var(--run-{trace.colour})" if isinstance(trace.colour, int) else f"var(--{trace.colour})"


def _rule(kind: str, left: float, height: float, right: float) -> Markup:
    y = f"{SIDE * (1 - height):.1f}"
    return element("path", class_=kind, d=f"M{SIDE * left:.1f},{y}H{SIDE * right:.1f}")


def _rectangle(left: float, right: float) -> Markup:
    return element(
        "rect", class_="band", x=f"{SIDE * left:.1f}", y=0, width=f"{SIDE * (right - left):.1f}", height=SIDE
    )


def _x(across: Scale, value: float) -> str:
    return _short(SIDE * across.place(value))


def _y(up: Scale, value: float) -> str:
    return _short(SIDE * (1 - min(max(up.place(value), 0.0), 1.0)))


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
