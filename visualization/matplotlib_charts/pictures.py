"""Figures -> pictures for documents and machines without a browser: one for each section, drawn by matplotlib."""

from __future__ import annotations

import io
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from inference_benchmarker.report.headline import OUTCOMES, VALID
from inference_benchmarker.words.text import shortened, wrapped
from visualization.figures.by_name import SOURCES
from visualization.figures.figures import STRIP_KEY, Bar, Bars, Curves, Figures, Section
from visualization.figures.palette import LIGHT, color_of
from visualization.matplotlib_charts.curves import draw_curves
from visualization.matplotlib_charts.ladder import (
    BESIDE,
    draw_ladder,
    draw_limits,
    height_of,
    runs_of,
    set_scale,
    spans_decades,
)
from visualization.matplotlib_charts.ladder import KEY as LADDER_KEY
from visualization.matplotlib_charts.marks import (
    SOFT,
    is_valid,
    marker_of,
    number_text,
    put_title,
    roomy,
    tick_text,
    title_of,
)
from visualization.matplotlib_charts.strip import HEIGHT
from visualization.matplotlib_charts.strips import NUMBERS, ROOM, STRIP, is_apart
from visualization.matplotlib_charts.strips import runs_of as runs_in_strips

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS, _WIDTH, _DPI = 3, 13.0, 110
_CHART, _BAR = 2.4, 0.24  # inches: how high a chart is, how thick a bar may be
_FEW = 10.0  # times the smallest: beyond, bars leave nothing to see of most runs
_LONGEST = 190  # letters have room in a line
_IN_A_LINE, _IN_SMALL_LINE = 110, 135  # of a title, and of one that has two lines
_EDGE, _NAMES = 0.75, 1.75  # inches left of a chart: of numbers, of runs' names
STYLE: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that a picture is the same everywhere
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": SOFT,
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


def pictures(figures: Figures, kinds: tuple[str, ...], name: str) -> Iterator[tuple[str, str | bytes]]:
    """(file name, content) of the picture of each section that has one, in each kind: ``png``, ``svg``, a text.

    A file is called ``name``, an underscore and the section's key.
    """
    import matplotlib as mpl

    if not kinds:
        return
    with mpl.rc_context(STYLE):
        for section in (each for whole in figures.sections if whole.pictured for each in _of_one_kind(whole)):
            drawn = drawing(section, figures)
            for kind in kinds:
                content = _bytes(drawn, kind)
                yield f"{name}_{section.key}.{kind}", content.decode() if kind == "svg" else content


def _bytes(drawn: Figure, kind: str) -> bytes:
    content = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a box stands for it; the page has the name
        drawn.savefig(content, format=kind, dpi=_DPI, metadata={"Date": None} if kind == "svg" else None)
    return content.getvalue()


def drawing(section: Section, figures: Figures) -> Figure:
    """A grid of charts below the section's title, above one legend; laid out in inches, so that text always fits."""
    from matplotlib.figure import Figure

    bars = isinstance(section.charts[0], Bars)
    ladders = any(map(_is_ladder, section.charts))
    columns = min(2, len(section.charts)) if ladders else _columns(len(section.charts))
    starts = range(0, len(section.charts), columns)
    heights = [max(map(_height, section.charts[start : start + columns])) for start in starts]
    rows, mean_height = len(heights), sum(heights) / len(heights)
    strips = any(map(_is_strips, section.charts))
    gap, left = 0.75, _NAMES if bars else ROOM if strips else _EDGE
    legend = 0.35 + 0.22 * -(-len(figures.runs) // _in_legend(figures))
    head = 0.85 + 0.2 * max(len(_title(section, figures)) - 2, 0)
    height = head + sum(heights) + (rows - 1) * gap + (0.6 if not bars else 0.4) + legend
    drawn = Figure(figsize=(_WIDTH, height), facecolor="white")
    places = list(drawn.subplots(rows, columns, squeeze=False, height_ratios=heights).flat)
    right = NUMBERS if strips else 0.2
    room = (_WIDTH - right) / columns
    drawn.subplots_adjust(
        left=left / _WIDTH,
        right=1 - right / _WIDTH,
        top=1 - head / height,
        bottom=(legend + (0.6 if not bars else 0.4)) / height,
        wspace=(left + right * strips) / (room - left),
        hspace=gap / mean_height,
    )
    for chart, axes in zip(section.charts, places, strict=False):
        _chart(chart, axes, figures, section)
    timed = [axes for chart, axes in zip(section.charts, places, strict=False) if _is_timed(chart)]
    if timed:
        _one_axis(timed)
    for axes in places[len(section.charts) :]:
        axes.set_axis_off()
    _legend(drawn, section, figures)
    if any(isinstance(chart, Curves) and chart.strip for chart in section.charts):
        drawn.text(1 - 0.2 / _WIDTH, 0.12 / height, STRIP_KEY, ha="right", va="bottom", fontsize=8, color=SOFT)
    if ladders:
        drawn.text(1 - 0.2 / _WIDTH, 0.12 / height, LADDER_KEY, ha="right", va="bottom", fontsize=8, color=SOFT)
    return drawn


def _of_one_kind(section: Section) -> Iterator[Section]:
    """The section; one of bars and curves as two, the second under a key of its own."""
    bars = tuple(chart for chart in section.charts if isinstance(chart, Bars))
    curves = tuple(chart for chart in section.charts if isinstance(chart, Curves))
    if bars:
        yield replace(section, charts=bars)
    if curves:
        yield replace(section, charts=curves, key=f"{section.key}_curves" if bars else section.key)


def _is_timed(chart: Bars | Curves) -> bool:
    return isinstance(chart, Curves) and chart.x.title == "Time"


def _columns(charts: int) -> int:
    """So many charts side by side; four stand two by two."""
    return 2 if charts == 4 else min(_COLUMNS, charts)


def _is_ladder(chart: Bars | Curves) -> bool:
    """Tells whether a run has several statistics."""
    return isinstance(chart, Bars) and len(chart.statistics) > 1


def _is_strips(chart: Bars | Curves) -> bool:
    return isinstance(chart, Curves) and is_apart(chart)


def _height(chart: Bars | Curves) -> float:
    """Of the chart in inches."""
    if isinstance(chart, Curves):
        own = max(STRIP * len(runs_in_strips(chart)), _CHART / 2) if is_apart(chart) else _CHART
        return own + (HEIGHT if chart.strip else 0)
    return height_of(chart) if _is_ladder(chart) else 0.3 + 0.24 * len(_rows(chart))


def _one_axis(places: Sequence[Axes]) -> None:
    """All from the start of the waves, or what was measured before it, to the last second."""
    first = min(0, *(axes.dataLim.x0 for axes in places))
    last = max(1, *(axes.dataLim.x1 for axes in places))
    for axes in places:
        axes.set_xlim(*roomy(first, last))


def _legend(drawn: Figure, section: Section, figures: Figures) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=color_of(run), marker=marker_of(run), linewidth=2, label=name_of(figures, run))
        for run in range(len(figures.runs))
    ]
    at = 1 - 0.12 / drawn.get_figheight()
    title = _title(section, figures)
    size = 13 if len(" ".join(title)) <= _IN_A_LINE else 10.5
    drawn.suptitle("\n".join(title), x=0.12 / _WIDTH, y=at, ha="left", va="top", fontsize=size, fontweight="bold")
    if section.same:
        text = shortened(f"The same in all runs: {' · '.join(map(' '.join, section.same))}", _LONGEST)
        drawn.text(0.12 / _WIDTH, at - 0.3 / drawn.get_figheight(), text, va="top", fontsize=8, color=SOFT)
    drawn.legend(handles=handles, loc="lower left", ncols=min(len(handles), _in_legend(figures)), frameon=False)


def _title(section: Section, figures: Figures) -> list[str]:
    """The lines of the title: of a page that has a first sentence, all of that."""
    title = figures.lead if figures.lead and figures.overview is None else section.title
    return wrapped(title, _IN_SMALL_LINE)


def _in_legend(figures: Figures) -> int:
    """The number of runs in a line of the legend."""
    longest = max(len(name_of(figures, run)) for run in range(len(figures.runs)))
    return max(int(_WIDTH / (0.75 + 0.085 * longest)), 1)


def _chart(chart: Bars | Curves, axes: Axes, figures: Figures, section: Section) -> None:
    if isinstance(chart, Curves):
        draw_curves(chart, axes, figures, _height(chart))
    elif _is_ladder(chart):
        place = axes.get_position()
        axes.set_position((place.x0, place.y0, place.width - BESIDE / _WIDTH, place.height))
        names = [_row(figures, run) for run in runs_of(chart)]
        beside = [each for each in section.charts if isinstance(each, Bars) and chart.source in SOURCES]
        draw_ladder(chart, axes, figures, names, place.width * _WIDTH - BESIDE, beside=beside)
    else:
        _bars(chart, axes, figures)


def _bars(chart: Bars, axes: Axes, figures: Figures) -> None:
    """A bar a run, lying, with its number at its end."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    bars = _rows(chart)
    high = axes.get_position().height * axes.figure.get_figheight()  # type: ignore[union-attr]
    thickness = min(0.72, _BAR * len(bars) / high)
    decades = spans_decades([bar.value or 0 for _, bar in bars], _FEW)
    for place, (run, bar) in enumerate(bars):
        if decades:
            _point(bar.value or 0, place, run, axes, figures)
        else:
            axes.barh(place, bar.value or 0, thickness, **_fill(figures, run))
        if bar.value is not None and bar.low is not None and bar.high is not None:
            below, above = max(bar.value - bar.low, 0), max(bar.high - bar.value, 0)  # whoever wrote them
            axes.errorbar(bar.value, place, xerr=[[below], [above]], **_WHISKER)
        end = max(bar.value or 0, bar.high or 0)
        number = "not measured" if bar.value is None else f" {f'{bar.sign} '.lstrip()}{number_text(bar.value)}"
        text = number + "*" * bool(bar.note)
        axes.annotate(text, (end, place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)
    draw_limits(chart, axes, [bar.value for _, bar in bars if bar.value is not None])
    width = axes.get_position().width * _WIDTH
    narrow = width < 2 * _NAMES  # then the title begins above the names
    put_title(axes, title_of(chart.title, chart.unit), x=(0.1 - _NAMES) / width if narrow else 0)
    axes.set_yticks(range(len(bars)), [_row(figures, run) for run, _ in bars], fontsize=8)
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    if decades:
        set_scale(axes, [bar.value or 0 for _, bar in bars], decades=True)
        least, most = axes.get_xlim()
        axes.set_xlim(least, most * (most / least) ** 0.3)  # room for the numbers beside them
        return
    low, high = min(axes.dataLim.x0, 0), max(axes.dataLim.x1, 0)
    axes.set_xlim(1.22 * low, 1.22 * high if high or low else 1)
    axes.xaxis.set_major_locator(MaxNLocator(max(int(width), 3), steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value)))


def _point(value: float, place: int, run: int, axes: Axes, figures: Figures) -> None:
    """Of values that span decades: a bar has no end to begin at on such a scale."""
    face = color_of(run) if is_valid(figures, run) else "white"
    axes.plot(value, place, marker_of(run), color=color_of(run), markerfacecolor=face, markersize=7)


def _rows(chart: Bars) -> list[tuple[int, Bar]]:
    """The bars of a chart whose runs have one each, and whose they are."""
    (bars,) = chart.statistics.values()
    return list(enumerate(bars, chart.first))


_WHISKER: dict[str, Any] = {"color": "#1b1f27", "capsize": 2.5, "linewidth": 1, "linestyle": "none"}


def _fill(figures: Figures, run: int) -> dict[str, Any]:
    color = color_of(run)
    if not is_valid(figures, run):
        return {"facecolor": "white", "edgecolor": color, "hatch": "////"}
    again = run >= len(LIGHT)  # the colours begin anew
    return {"facecolor": color, "edgecolor": "white" if again else color, "hatch": "...." if again else None}


def name_of(figures: Figures, run: int) -> str:
    """The name of a run in a legend, with what is to be known of its numbers."""
    card = figures.runs[run]
    counts = card.verdict[:1].isdigit()  # how many of its points are usable
    doubt = "" if counts or card.verdict.startswith((VALID, *OUTCOMES)) else card.verdict.split(" ")[0]
    notes = ", ".join(filter(None, (doubt, card.precision)))
    label = shortened(card.label, 100)
    return f"{label} ({notes})" if notes else label


def _row(figures: Figures, run: int) -> str:
    """The text beside a bar: the label, cut in its middle, with a mark where the run is not VALID."""
    short = shortened(figures.runs[run].label, 22)
    return short if is_valid(figures, run) else f"✗ {short}"
