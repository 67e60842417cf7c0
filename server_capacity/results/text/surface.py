"""A surface in words: its table, the searches and what the fit says of them, and what twice as long would mean. Pure.

What is read here is the object of ``surface.json``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.exit_codes import INTERRUPTED, OK
from inference_benchmarker.words.text import plain
from inference_benchmarker.words.wording import aligned, pluralize
from server_capacity.results.text.headline import between, rate_text
from server_capacity.results.text.model import folded_sentence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from server_capacity.results.types.bounds import Interval
    from server_capacity.results.types.surface import Doubled, PredictedPoint, SearchedPoint, SurfaceResult

_USES = {"fit": "fit", "held_out": "held out"}


def headline(found: SurfaceResult) -> str:
    """The surface and its range, or the reason why there is none; and the searches that did not end well."""
    answer = {"searching": _unfinished, "given": _given, "refused": _refused}[found.stage](found)
    bad = [f"{lengths_text(row)}: exit code {row.exit_code}" for row in found.searches if row.exit_code != OK]
    if not bad or found.stage == "searching":
        return answer
    return f"{answer}; {', '.join(bad)}" if found.stage == "refused" else f"{', '.join(bad)}; {answer}"


def _given(found: SurfaceResult) -> str:
    rows = sorted((row for row in found.grid if row.rate is not None), key=lambda row: row.rate or 0.0)
    held_out = sum(row.use == "held_out" for row in found.searches)
    agree = f"{pluralize(held_out, 'held-out search agrees', 'held-out searches agree')} with the fit"
    if not rows:
        return f"Surface: no point of the grid is within the load that was measured; {agree}"
    least, most = (f"{rate_text(row.rate, row.interval)} at {lengths_text(row)}" for row in (rows[0], rows[-1]))
    return f"Surface of {len(rows)} of {len(found.grid)} points, from {least} to {most}; {agree}"


def _refused(found: SurfaceResult) -> str:
    return f"No surface: {(found.refused or '').rstrip('.')}"


def _unfinished(found: SurfaceResult) -> str:
    done = sum(row.capacity is not None for row in found.searches)
    begin = "Interrupted" if found.exit_code == INTERRUPTED else "Unfinished"
    return f"{begin}: {done} of {len(found.searches)} searches of the surface"


def lengths_text(row: SearchedPoint | PredictedPoint | Doubled) -> str:
    """``500x100``: tokens of the prompt and of the answer."""
    return f"{row.input_tokens}x{row.output_tokens}"


def doubled_text(row: Doubled) -> str:
    """``Answers twice as long (500x100 to 500x200): 61% fewer requests/s (52 to 70%)``."""
    answers = row.what == "answers"
    prompt, answer = row.input_tokens * (1 if answers else 2), row.output_tokens * (2 if answers else 1)
    to = f"{lengths_text(row)} to {prompt}x{answer}"
    return f"{row.what.capitalize()} twice as long ({to}): {_change(row.share, row.interval)}"


def _change(share: float, interval: Interval) -> str:
    low, high = sorted((100 * (1 - interval.high), 100 * (1 - interval.low)))
    if low < 0 < high:
        return f"requests/s change by {-high:+.0f} to {-low:+.0f}%"
    low, high = sorted((abs(low), abs(high)))
    return f"{100 * abs(1 - share):.0f}% {'fewer' if share < 1 else 'more'} requests/s ({low:.0f} to {high:.0f}%)"


def to_text(found: SurfaceResult, folder: str = "") -> str:
    """The report: the answer first and last."""
    answer = headline(found)
    sections = (
        [answer],
        [f"{doubled_text(row)}." for row in found.what_if],
        _grid(found.grid),
        _searches(found.searches),
        _engine(found),
        _notes(found),
        [answer, *([f"Folder: {folder}"] if folder else [])],
    )
    return "\n\n".join("\n".join(map(plain, lines)) for section in sections if (lines := list(section))) + "\n"


def _grid(grid: Sequence[PredictedPoint]) -> Iterator[str]:
    """Rates by lengths: prompts downwards, answers to the right."""
    if not grid:
        return
    answers = sorted({row.output_tokens for row in grid})
    cells = {(row.input_tokens, row.output_tokens): row for row in grid}
    head = ["Input \\ output tokens", *map(str, answers)]
    rows = [
        [str(prompt), *(_cell(cells.get((prompt, answer))) for answer in answers)]
        for prompt in sorted({row.input_tokens for row in grid})
    ]
    yield from aligned([head, *rows])


def _cell(row: PredictedPoint | None) -> str:
    return "-" if row is None or row.interval is None else f"{rate_text(row.rate, row.interval)}"


def _searches(rows: Sequence[SearchedPoint]) -> Iterator[str]:
    head = ["Search", "for", "capacity", "95% interval", "the fit says"]
    yield from aligned([head, *([*_first(row), _interval(row.interval), _interval(row.predicted)] for row in rows)])


def _first(row: SearchedPoint) -> list[str]:
    rate = "-" if row.rate is None else f"{'' if row.interval else '≥ '}{rate_text(row.rate, row.interval)}"
    return [lengths_text(row), _USES[row.use], rate]


def _interval(interval: Interval | None) -> str:
    return between(interval, "/s") if interval else "-"


def _engine(found: SurfaceResult) -> Iterator[str]:
    if found.engine is None:
        return
    engine = found.engine
    yield f"Fitted to {engine.streams:,} streams, {engine.idle:,} of which found the engine idle (ms):"
    yield from aligned(
        [["Constant", "value", "95% interval"]]
        + [[row.name, f"{row.value:.5g}", f"{row.low:.4g} to {row.high:.4g}"] for row in engine.constants]
    )


def _notes(found: SurfaceResult) -> Iterator[str]:
    for row in found.searches:
        if row.warnings:
            yield from folded_sentence(f"? {lengths_text(row)}: {'; '.join(row.warnings)}.")
    beyond = [f"{lengths_text(row)} takes {row.beyond}" for row in found.grid if row.beyond]
    if beyond:
        yield from folded_sentence(f"Without a capacity, since the fit is not believed so far: {'; '.join(beyond)}.")
    if found.engine is not None:
        engine = found.engine
        yield from folded_sentence(
            f"The KV cache holds at least {engine.context:,.0f} tokens, and a batch at least {engine.decodes:,} "
            "answers: the most that was measured. Prompts and answers are lengths in tokens, inputxoutput."
        )
