"""Printing: results go to standard output, everything else to standard error."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any, TextIO

from inference_benchmarker.advance import listening
from inference_benchmarker.text import folded, plain_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from inference_benchmarker.cli.key_pilot import KeyPilot
    from inference_benchmarker.engine.live import Live
    from inference_benchmarker.facts.server_metric import Newest
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.wave.spool_state import SpoolState
    from inference_benchmarker.wave.wave import Wave


SLOW_S = 2.0  # what takes longer has somebody asking how far it is
_AGAIN_S = 0.2
_LEAST_WIDTH = 40  # of a terminal whose lines are worth folding
_EMPTIED = "\r\x1b[K"


def say(message: str) -> None:
    """A line beside the result."""
    print(message, file=sys.stderr, flush=True)


def say_nothing(_: str) -> None:
    """--quiet."""


def print_result(found: Any, *, as_json: bool | None) -> None:
    """Print the outcome of a search or a check."""
    print(json.dumps(found.to_json(), indent=2) + "\n" if as_json else found.to_text(), end="", flush=True)


def print_wave(wave: Wave, *, as_json: bool | None) -> None:
    """The whole report of a wave."""
    if as_json:
        print(json.dumps(wave.to_json(), indent=2), flush=True)
    else:
        print_report(wave.text())


def print_report(text: str) -> None:
    """A report, or a part of it: on a terminal a long line goes on in the next one at a space."""
    width = report_width(0)
    print(folded(text, width) if width else text, end="", flush=True)


def report_width(usual: int) -> int:
    """The columns of a terminal that a report is printed on; ``usual`` where there is none, or a very narrow one."""
    width = _width(sys.stdout) - 1 if sys.stdout.isatty() else 0  # a sign as ⚠️ may take two columns
    return width if width > _LEAST_WIDTH else usual


def write_file(data: bytes) -> None:
    """A file's content as it is, whatever the locale."""
    from inference_benchmarker.cli.outlet import Outlet

    if isinstance(sys.stdout, Outlet):
        sys.stdout.write_bytes(data)


def live_view(plan: WavePlan, sources: Sequence[Newest] = (), *, quiet: bool | None) -> Live:
    """The view of a running wave: a panel on a terminal, with the newest of the ``sources``; plain lines elsewhere."""
    from inference_benchmarker.cli.progress import PanelView, PlainView
    from inference_benchmarker.engine.live import Nobody

    if quiet:
        return Nobody()
    return PanelView(plan, _styled(), sources) if sys.stderr.isatty() else PlainView(plan, sys.stderr)


def search_view(plan: WavePlan, text: Callable[[SpoolState, int], str] | None, *, quiet: bool | None) -> Live:
    """The view of a wave of a search: of an adaptive one the line that ``text`` gives, of any other as of a wave."""
    if text is None or quiet:
        return live_view(plan, quiet=quiet)
    from inference_benchmarker.cli.search_view import SearchView

    on_terminal = sys.stderr.isatty()
    stream = _styled() if on_terminal else sys.stderr
    return SearchView(text, stream, (lambda: _width(sys.stderr)) if on_terminal else None)


@contextmanager
def at_the_keys(plan: WavePlan, live: Live) -> Iterator[KeyPilot | None]:
    """Whoever answers the keys that change the rate, with the terminal in their hands; None where it is settled."""
    from inference_benchmarker.plan.load import OpenLoop

    if not isinstance(plan.load, OpenLoop) or not plan.load.is_steered:
        yield None
        return
    from inference_benchmarker.cli.key_pilot import KeyPilot
    from inference_benchmarker.cli.keys import Keys
    from inference_benchmarker.cli.progress import PanelView

    assert isinstance(live, PanelView), "it is asked for on a terminal alone"
    with Keys(sys.stdin.fileno()) as keys:
        yield KeyPilot(keys.pressed, plan.load.rate, live.set_foot)


def has_terminal() -> bool:
    """Tells whether somebody can see the live view and press keys."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def _width(stream: TextIO) -> int:
    """Of the terminal beneath a stream, if it is still there."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def _styled() -> TextIO:
    """Standard error for what moves the cursor."""
    from inference_benchmarker.cli.outlet import Outlet

    return sys.stderr.styled() if isinstance(sys.stderr, Outlet) else sys.stderr


@contextmanager
def progress(quiet: bool | None) -> Iterator[Callable[[str], None]]:
    """Yields a function that says how a search goes on: on a terminal the next line overwrites what is being tried."""
    from client_capacity.search import PASSING

    passing = ""

    def overwrite(message: str) -> None:
        nonlocal passing
        width = _width(sys.stderr) - 1
        message = plain_lines(message)
        passing = message[:width] if message.startswith(PASSING) else ""
        print(f"{_EMPTIED}{passing or message}", end="" if passing else "\n", file=_styled(), flush=True)

    try:
        yield say_nothing if quiet else overwrite if sys.stderr.isatty() else say
    finally:
        if passing:
            print(_EMPTIED, end="", file=_styled(), flush=True)


@contextmanager
def how_far(*, quiet: bool | None = False) -> Iterator[None]:
    """Meanwhile a line of a terminal says how far a long computation is; it is empty again whenever one is over."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    line = _HowFar()
    try:
        with listening(line):
            yield
    finally:
        line.empty()


class _HowFar:
    """The line. It waits for what is slow from the first computation on: before that nobody waited for one."""

    def __init__(self) -> None:
        self._next_s: float | None = None
        self._written = False

    def __call__(self, what: str, done: int, of: int) -> None:
        now = monotonic()
        if self._next_s is None:
            self._next_s = now + SLOW_S
        if done >= of:
            self.empty()
        elif now >= self._next_s:
            self._next_s = now + _AGAIN_S
            self._written = True
            text = f"{what}: {done / of:.0%}"
            print(_EMPTIED + text[: _width(sys.stderr) - 1], end="", file=_styled(), flush=True)

    def empty(self) -> None:
        """Leave nothing in the line."""
        if self._written:
            print(_EMPTIED, end="", file=_styled(), flush=True)
            self._written = False
