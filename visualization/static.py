"""Figures -> pictures for documents and machines without a browser: one for each section, drawn by matplotlib."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any

from visualization.figures import STRIP_KEY, Axis, Bar, Bars, Curves, Figures, Section
from visualization.html import LIGHT
from visualization.static_strip import HEIGHT, draw_strip

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from visualization.figures import Points

_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "*")
_COLUMNS, _WIDTH, _DPI = 3, 13.0, 110
_TITLE = 44  # so many characters stand above one of three columns
_CHART, _BAR, _COLUMN = 2.4, 0.24, 0.5  # inches: how high a chart is, how thick a lying bar and a standing one may be
_EDGE, _NAMES = 0.75, 1.75  # inches left of a chart: of numbers, of runs' names
_ROOM = 0.05  # how much of an axis is left free beyond the first and the last point, so that markers stay whole
_NAME_ROOM = 0.06  # of an axis, for the names of stages
_LETTERS = 60  # of a small type have room in a picture
_SOFT = "#565e6c"
_NINES = (0, 50, 90, 99, 99.9, 99.99)
_STYLE: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that a picture is the same everywhere
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": _SOFT,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "grid.color": "#e3e6eb",
    "hatch.linewidth": 1.2,
    "text.parse_math": False,  # a name may hold a dollar
    "svg.hashsalt": "benchmark",
    "svg.fonttype": "path",
}


def pictures(figures: Figures, kinds: tuple[str, ...], name: str) -> Iterator[tuple[str, bytes]]:
    """(file name, content) of the picture of each section that has one, in each kind: ``png``, ``svg``.

    A file is called ``name``, an underscore and the section's key.
    """
    import matplotlib as mpl

    if not kinds:
        return
    with mpl.rc_context(_STYLE):
        for section in (each for each in figures.sections if each.pictured):
            drawn = _draw(section, figures)
            for kind in kinds:
                yield f"{name}_{section.key}.{kind}", _bytes(drawn, kind)


def _bytes(drawn: Figure, kind: str) -> bytes:
    content = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a box stands for it; the page has the name
        drawn.savefig(content, format=kind, dpi=_DPI, metadata={"Date": None} if kind == "svg" else None)
    return content.getvalue()


def _draw(section: Section, figures: Figures) -> Figure:
    """A grid of charts below the section's title, above one legend; laid out in inches, so that text always fits."""
    from matplotlib.figure import Figure

    bars = isinstance(section.charts[0], Bars)
    columns = 1 if any(map(_is_grouped, section.charts)) else min(_COLUMNS, len(section.charts))
    heights = [_height(chart) for chart in section.charts[::columns]]
    rows, mean_height = len(heights), sum(heights) / len(heights)
    gap, left = 0.75, _NAMES if any(map(_is_lying, section.charts)) else _EDGE
    legend = 0.35 + 0.22 * -(-len(figures.runs) // _in_legend(figures))
    height = 0.85 + sum(heights) + (rows - 1) * gap + (0.6 if not bars else 0.4) + legend
    drawn = Figure(figsize=(_WIDTH, height), facecolor="white")
    places = list(drawn.subplots(rows, columns, squeeze=False, height_ratios=heights).flat)
    room = (_WIDTH - 0.2) / columns
    drawn.subplots_adjust(
        left=left / _WIDTH,
        right=1 - 0.2 / _WIDTH,
        top=1 - 0.85 / height,
        bottom=(legend + (0.6 if not bars else 0.4)) / height,
        wspace=left / (room - left),
        hspace=gap / mean_height,
    )
    for chart, axes in zip(section.charts, places, strict=False):
        _chart(chart, axes, figures)
    if section.key == "time":
        _one_axis([axes for _, axes in zip(section.charts, places, strict=False)])
    for axes in places[len(section.charts) :]:
        axes.set_axis_off()
    _legend(drawn, section, figures)
    if any(isinstance(chart, Curves) and chart.strip for chart in section.charts):
        drawn.text(1 - 0.2 / _WIDTH, 0.12 / height, STRIP_KEY, ha="right", va="bottom", fontsize=8, color=_SOFT)
    return drawn


def _is_grouped(chart: Bars | Curves) -> bool:
    """Tells whether each statistic has a group of bars, standing."""
    return isinstance(chart, Bars) and len(chart.statistics) > 1


def _is_lying(chart: Bars | Curves) -> bool:
    """Tells whether each run has one bar, with its name beside it."""
    return isinstance(chart, Bars) and len(chart.statistics) == 1


def _height(chart: Bars | Curves) -> float:
    """Of the chart in inches."""
    if isinstance(chart, Curves):
        return _CHART + (HEIGHT if chart.strip else 0)
    return _CHART if _is_grouped(chart) else 0.3 + 0.24 * len(_rows(chart))


def _one_axis(places: Sequence[Axes]) -> None:
    """All from the start of the waves, or what was measured before it, to the last second."""
    first = min(0, *(axes.dataLim.x0 for axes in places))
    last = max(1, *(axes.dataLim.x1 for axes in places))
    for axes in places:
        axes.set_xlim(*_roomy(first, last))


def _roomy(low: float, high: float) -> tuple[float, float]:
    """The ends of an axis that begins at 0 where a point there leaves room for its marker."""
    room = _ROOM * ((max(high, 0) - min(low, 0)) or 1)
    return min(low - room, 0), max(high + room, 0) if high or low else 1


def _legend(drawn: Figure, section: Section, figures: Figures) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=_color(run), marker=_marker(run), linewidth=2, label=_name(figures, run))
        for run in range(len(figures.runs))
    ]
    at = 1 - 0.12 / drawn.get_figheight()
    drawn.suptitle(
        figures.lead or section.title, x=0.12 / _WIDTH, y=at, ha="left", va="top", fontsize=13, fontweight="bold"
    )
    drawn.legend(handles=handles, loc="lower left", ncols=min(len(handles), _in_legend(figures)), frameon=False)


def _in_legend(figures: Figures) -> int:
    """The number of runs in a line of the legend."""
    longest = max(len(_name(figures, run)) for run in range(len(figures.runs)))
    return max(int(_WIDTH / (0.75 + 0.085 * longest)), 1)


def _chart(chart: Bars | Curves, axes: Axes, figures: Figures) -> None:
    if isinstance(chart, Curves):
        _curves(chart, axes, figures)
    elif _is_grouped(chart):
        _grouped(chart, axes, figures)
    else:
        _bars(chart, axes, figures)


def _bars(chart: Bars, axes: Axes, figures: Figures) -> None:
    """A bar a run, lying, with its number at its end."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    bars = _rows(chart)
    thickness = min(0.72, _BAR * len(bars) / _height(chart))
    for place, (run, bar) in enumerate(bars):
        axes.barh(place, bar.value or 0, thickness, **_fill(figures, run))
        if bar.value is not None and bar.low is not None and bar.high is not None:
            axes.errorbar(bar.value, place, xerr=[[bar.value - bar.low], [bar.high - bar.value]], **_WHISKER)
        end = max(bar.value or 0, bar.high or 0)
        number = "not measured" if bar.value is None else f" {f'{bar.sign} '.lstrip()}{_number(bar.value)}"
        text = number + "*" * bool(bar.note)
        axes.annotate(text, (end, place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)
    width = axes.get_position().width * _WIDTH
    narrow = width < 2 * _NAMES  # then the title begins above the names
    _put_title(axes, _title(chart.title, chart.unit), x=(0.1 - _NAMES) / width if narrow else 0)
    axes.set_yticks(range(len(bars)), [_row(figures, run) for run, _ in bars], fontsize=8)
    axes.set_ylim(len(bars) - 0.5, -0.5)
    low, high = min(axes.dataLim.x0, 0), max(axes.dataLim.x1, 0)
    axes.set_xlim(1.22 * low, 1.22 * high if high or low else 1)
    axes.xaxis.set_major_locator(MaxNLocator(max(int(width), 3), steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
    axes.grid(visible=False, axis="y")


def _rows(chart: Bars) -> list[tuple[int, Bar]]:
    """The bars of a chart whose runs have one each, and whose they are."""
    (bars,) = chart.statistics.values()
    return list(enumerate(bars, chart.first))


_WHISKER: dict[str, Any] = {"color": "#1b1f27", "capsize": 2.5, "linewidth": 1, "linestyle": "none"}


def _grouped(chart: Bars, axes: Axes, figures: Figures) -> None:
    """Every statistic: a group of bars side by side, a bar a run."""
    inch = (len(chart.statistics) + 0.2) / (axes.get_position().width * _WIDTH)
    width = min(0.86 / len(figures.runs), _COLUMN * inch)
    small = 8 if len(figures.runs) < 5 else 6.5
    for place, bars in enumerate(chart.statistics.values()):
        for run, bar in enumerate(bars):
            x = place + (run - (len(bars) - 1) / 2) * width
            if bar.value is None:
                continue
            axes.bar(x, bar.value, width * 0.92, **_fill(figures, run))
            if bar.low is not None and bar.high is not None:
                axes.errorbar(x, bar.value, yerr=[[bar.value - bar.low], [bar.high - bar.value]], **_WHISKER)
            text = f"{bar.sign}{_number(bar.value)}"
            axes.annotate(text, (x, max(bar.value, bar.high or 0)), xytext=(0, 3), textcoords="offset points",
                          ha="center", va="bottom", fontsize=small, rotation=90 if len(bars) > 2 else 0)  # fmt: skip
    axes.set_title(_title(chart.title, chart.unit))
    axes.set_xticks(range(len(chart.statistics)), list(chart.statistics))
    axes.set_xlim(-0.6, len(chart.statistics) - 0.4)
    axes.margins(y=0.25)
    axes.grid(visible=False, axis="x")


def _curves(chart: Curves, axes: Axes, figures: Figures) -> None:
    statistic = _static_statistic(chart)
    _bands(chart, axes)
    for line in chart.lines:
        if line.statistic != statistic:
            continue
        x = [each for each, _ in line.points]
        y = [float("nan") if each is None else each for _, each in line.points]
        if line.run is not None:
            places = range(len(x))
            every = {
                *places[:: 1 if line.marked else max(len(x) // 6, 1)],
                *(place for place in places if _is_alone(line.points, place)),
            }
            axes.plot(x, y, "--" if line.dashed else "-", color=_color(line.run), linewidth=1.4,
                      drawstyle="steps-post" if line.stepped else "default",
                      marker=_marker(line.run), markersize=4, markevery=sorted(every))  # fmt: skip
        else:
            axes.plot(x, y, "-" if line.over else ":", color="#9aa2af", linewidth=1.2)
            if line.name and y[0] == y[-1]:
                axes.annotate(
                    line.name, (x[0], y[0]), xytext=(2, 3), textcoords="offset points", fontsize=8, color=_SOFT
                )
        for run, at, value in zip(line.over, x, y, strict=False):
            face = _color(run) if _valid(figures, run) else "white"
            axes.plot(at, value, _marker(run), color=_color(run), markerfacecolor=face, markersize=7)
        if line.knee is not None:
            axes.axvline(line.knee[0], color=_SOFT, linewidth=1, linestyle=":")
            text, where = f"knee near {_number(line.knee[0])}/s ", (line.knee[0], 1)
            axes.annotate(text, where, xycoords=("data", "axes fraction"), ha="right", va="top", fontsize=8)
    names = dict.fromkeys((line.name, line.dashed) for line in chart.lines if line.name and line.run is not None)
    told = [f"{name} {'dashed' if dashed else 'solid'}" if len(names) == 2 else name for name, dashed in names]
    key = ", ".join(told) if len(told) <= 2 else ""
    title = _title(chart.title, ", ".join(part for part in (statistic, chart.y.unit, key) if part))
    _put_title(axes, title)
    axes.set_xlabel(_title(chart.x.title, chart.x.unit), fontsize=8)
    _scale(chart.x, chart.y, axes)
    if chart.bands:
        _make_room_above(axes)
    if chart.strip is not None:
        draw_strip(chart.strip, axes, _height(chart), _color)


def _put_name(axes: Axes, name: str, x: float, y: float) -> None:
    """Above the left end of a level line."""
    axes.annotate(name, (x, y), xytext=(2, 3), textcoords="offset points", fontsize=8, color=_SOFT)


def _is_alone(points: Points, place: int) -> bool:
    """Tells whether no line leads to a point, which is seen by its marker alone."""
    beside = points[max(place - 1, 0) : place + 2]
    return points[place][1] is not None and sum(y is not None for _, y in beside) == 1


def _bands(chart: Curves, axes: Axes) -> None:
    """Every other stretch of the x axis is shaded; its name stands at the top, upright where it is narrow.

    The axis shows all of each, shaded or not.
    """
    whole = chart.bands[-1][2] - chart.bands[0][1] if chart.bands else 0
    for number, (name, start, end) in enumerate(chart.bands):
        axes.axvspan(start, end, color="#8a93a3", alpha=0.0 if number % 2 else 0.13, linewidth=0)
        middle, narrow = ((start + end) / 2, 0.985), end - start < whole * len(name) / _LETTERS
        axes.annotate(
            name, middle, xycoords=("data", "axes fraction"), ha="center", va="top", fontsize=7, color=_SOFT,
            rotation=90 if narrow else 0,
        )  # fmt: skip


def _scale(x: Axis, y: Axis, axes: Axes) -> None:
    from math import log10

    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_yscale("log" if y.scale == "log" else "linear")
    if y.scale == "log":
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(*_roomy(axes.dataLim.y0, axes.dataLim.y1))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
    if x.scale == "nines":
        places = [-log10(1 - percent / 100) for percent in _NINES]
        axes.set_xticks(places, [f"p{percent:g}" if percent else "min" for percent in _NINES], fontsize=8)
        axes.set_xlim(*_roomy(0, max(axes.dataLim.x1, 1)))
    else:
        axes.set_xlim(*_roomy(axes.dataLim.x0, axes.dataLim.x1))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))


def _make_room_above(axes: Axes) -> None:
    """The axis goes on above the highest point by the height of a name, so that no line runs through the stages'."""
    (low, high), transform = axes.get_ylim(), axes.yaxis.get_transform()
    bottom, top = transform.transform([low, high])
    axes.set_ylim(low, transform.inverted().transform([top + _NAME_ROOM * (top - bottom)])[0])


def _static_statistic(chart: Curves) -> str:
    """The statistic that a picture without a chooser shows: the tail, where a knee is first felt."""
    known = {line.statistic for line in chart.lines}
    return "p99" if "p99" in known else ""


def _fill(figures: Figures, run: int) -> dict[str, Any]:
    color = _color(run)
    if not _valid(figures, run):
        return {"facecolor": "white", "edgecolor": color, "hatch": "////"}
    again = run >= len(LIGHT)  # the colours begin anew
    return {"facecolor": color, "edgecolor": "white" if again else color, "hatch": "...." if again else None}


def _name(figures: Figures, run: int) -> str:
    card = figures.runs[run]
    word = card.verdict.split(" ")[0]
    notes = ", ".join(filter(None, ("" if word == "VALID" else word, card.precision)))
    label = _shortened(card.label, 100)
    return f"{label} ({notes})" if notes else label


def _color(run: int) -> str:
    return LIGHT[run % len(LIGHT)]


def _marker(run: int) -> str:
    return _MARKERS[run % len(_MARKERS)]


def _put_title(axes: Axes, title: str, x: float = 0) -> None:
    """Above the chart, from ``x`` of its width on; smaller where it is long."""
    axes.set_title(title, x=x, fontsize=min(9.5, 9.5 * _TITLE / len(title)))


def _title(title: str, unit: str) -> str:
    return f"{title} ({unit})" if unit else title


def _row(figures: Figures, run: int) -> str:
    """The text beside a bar: the label, cut in its middle, with a mark where the run is not VALID."""
    short = _shortened(figures.runs[run].label, 22)
    return short if _valid(figures, run) else f"✗ {short}"


def _shortened(label: str, most: int) -> str:
    """Cut in its middle: both ends say more than the beginning alone."""
    return label if len(label) <= most else f"{label[: most // 2 - 1]}…{label[-(most // 2) :]}"


def _valid(figures: Figures, run: int) -> bool:
    return not figures.runs[run].doubtful


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _tick(value: float) -> str:
    """On an axis, where there is little room."""
    sizes = ((1e12, "T"), (1e9, "G"), (1e6, "M"))
    size, letter = next((each for each in sizes if abs(value) >= each[0]), (1, ""))
    return _number(value / size) + letter
