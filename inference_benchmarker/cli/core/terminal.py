"""Printing: results go to standard output, everything else to standard error."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any, TextIO

from inference_benchmarker.cli.live.colours import coloured, wanted
from inference_benchmarker.system.followed import folder_of_follower
from inference_benchmarker.system.progress import listening
from inference_benchmarker.words.redact import hidden, without
from inference_benchmarker.words.text import cut, folded, plain_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from inference_benchmarker.cli.live.key_pilot import KeyPilot
    from inference_benchmarker.cli.live.screen import Screen
    from inference_benchmarker.engine.progress_listener import Live
    from inference_benchmarker.facts.server_metric import Newest
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.wave.spool.spool_state import SpoolState
    from inference_benchmarker.wave.wave import Wave


SLOW_S = 2.0  # what takes longer has somebody asking how far it is
_AGAIN_S = 0.2
_LEAST_WIDTH = 30  # of a terminal whose lines are worth folding
_EMPTIED = "\r\x1b[K"
_WAITING = "⏳"


def say(message: str) -> None:
    """A line beside the result; on a terminal a long one goes on in the next, and a secret may have blanks."""
    _PASSING.empty()
    width = _width(sys.stderr) - 1 if sys.stderr.isatty() else 0
    print(folded(plain_lines(hidden(message)), width) if width > _LEAST_WIDTH else message, file=sys.stderr, flush=True)


def separate(*, quiet: bool | None) -> None:
    """An empty line between what was said and the part of a report below it, where one terminal shows both."""
    if not quiet and sys.stderr.isatty() and sys.stdout.isatty():
        say("")


def say_reservations(waves: Iterable[Wave]) -> None:
    """Say of which runs damage may go unnoticed, which of them other rules judged, and which files were changed."""
    from inference_benchmarker.wave import reader

    for wave in waves:
        if wave.run_dir is not None:
            for clause in reader.reservations(wave):
                say(f"{wave.run_dir.path}: {clause}.")
            for problem in reader.side_problems(wave.run_dir, wave):
                say(problem)


def say_nothing(_: str) -> None:
    """--quiet."""


def passing(message: str, *, quiet: bool | None = False) -> None:
    """Say what happens now, in a line of a terminal that the next one overwrites."""
    if not quiet and sys.stderr.isatty():
        _PASSING.show(message)


def print_result(found: Any, *, as_json: bool | None) -> None:
    """Print the outcome of a search or a check."""
    if as_json:
        print(json.dumps(found.to_json(), indent=2), flush=True)
    else:
        print_report(found.to_text())


def print_wave(wave: Wave, *, as_json: bool | None, next_commands: Sequence[str] | None = None) -> None:
    """The report of a wave: the whole, or with ``next_commands`` the short one of a terminal."""
    if as_json:
        print(json.dumps(wave.to_json(), indent=2), flush=True)
    else:
        print_report(wave.text(report_width(), next_commands))


def print_json(found: object) -> None:
    """A result as its file has it."""
    from inference_benchmarker.data.decoded import encoded

    print(json.dumps(encoded(found), indent=2, allow_nan=False), flush=True)


def print_report(text: str) -> None:
    """A report, or a part of it: a line that is longer than ``report_width`` is folded at a space."""
    _PASSING.empty()
    width = report_width()
    shown = text if width is None else folded(plain_lines(without(text)), width)
    if wanted(sys.stdout):
        print(coloured(shown), end="", file=_styled(sys.stdout), flush=True)
    else:
        print(shown, end="", flush=True)


def report_width() -> int | None:
    """The columns that a report may have: the terminal's, elsewhere COLUMNS; None without either, or for very few."""
    if sys.stdout.isatty():
        width = _width(sys.stdout) - 1  # the last column makes some terminals begin a line
    else:
        given = os.environ.get("COLUMNS", "")
        width = int(given) if given.isascii() and given.isdecimal() else 0
    return width if width >= _LEAST_WIDTH else None


def write_file(data: bytes) -> None:
    """A file's content as it is, whatever the locale."""
    from inference_benchmarker.cli.core.redacting_stream import RedactingStream

    if isinstance(sys.stdout, RedactingStream):
        sys.stdout.write_bytes(data)


def live_view(plan: WavePlan, sources: Sequence[Newest] = (), *, quiet: bool | None, foot: str = "") -> Live:
    """The view of a running wave: a panel on a terminal, with the newest of the ``sources``; plain lines elsewhere.

    ``foot``: the panel's last line, such as which of several waves it is.
    """
    from inference_benchmarker.cli.live.progress import PanelView, PlainView
    from inference_benchmarker.engine.progress_listener import NullView

    if quiet:
        return NullView()
    if (folder := folder_of_follower()) is not None:
        from inference_benchmarker.cli.live.far_screen import FarScreen, FarView

        panel = PanelView(plan, FarScreen(folder), sources)
        panel.set_foot(foot)
        return FarView(folder, PlainView(plan, sys.stderr), panel)
    if (screen := screen_here()) is None:
        return PlainView(plan, sys.stderr)
    panel = PanelView(plan, screen, sources)
    panel.set_foot(foot)
    return panel


def screen_here() -> Screen | None:
    """The terminal of this command, as far as lines can be written again in place."""
    from inference_benchmarker.cli.live.screen import Screen

    return Screen(_styled(sys.stderr), colours=wanted(sys.stderr)) if _can_draw() else None


def search_view(plan: WavePlan, text: Callable[[SpoolState, int], str] | None, *, quiet: bool | None) -> Live:
    """The view of a wave of a search: of an adaptive one the line that ``text`` gives, of any other as of a wave."""
    if text is None or quiet:
        return live_view(plan, quiet=quiet)
    from inference_benchmarker.cli.live.search_view import SearchLines, SearchView

    screen = screen_here()
    return SearchLines(text, sys.stderr) if screen is None else SearchView(text, screen)


@contextmanager
def at_the_keys(plan: WavePlan, live: Live) -> Iterator[KeyPilot | None]:
    """Whoever answers the keys that change the rate, with the terminal in their hands; None where it is settled."""
    from inference_benchmarker.plan.load import OpenLoop

    if not isinstance(plan.load, OpenLoop) or not plan.load.is_steered:
        yield None
        return
    from inference_benchmarker.cli.live.far_screen import FarKeys, FarView
    from inference_benchmarker.cli.live.key_pilot import KeyPilot
    from inference_benchmarker.cli.live.keys import Keys
    from inference_benchmarker.cli.live.progress import PanelView

    if isinstance(live, FarView):
        yield KeyPilot(FarKeys(live.folder).pressed, plan.load.rate, live.panel.set_foot)
        return
    assert isinstance(live, PanelView), "it is asked for only on a terminal"
    with Keys(sys.stdin.fileno()) as keys:
        yield KeyPilot(keys.pressed, plan.load.rate, live.set_foot)


def for_now(tell: Callable[[str], None]) -> Callable[[str], None]:
    """Says by ``tell``; but that something is waited for is said, on a terminal, in a line that the next overwrites."""

    def say_or_pass(message: str) -> None:
        if message.startswith(_WAITING) and sys.stderr.isatty():
            passing(message)
        else:
            tell(message)

    return tell if tell is say_nothing else say_or_pass


def _can_draw() -> bool:
    """Tells whether lines can be written again in place."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def has_terminal() -> bool:
    """Tells whether somebody can see the live view and press keys."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def has_keys() -> bool:
    """Tells whether the keys of an interactive wave can be pressed, here or by whoever follows it from elsewhere."""
    return folder_of_follower() is not None or has_terminal()


def _width(stream: TextIO) -> int:
    """Of the terminal beneath a stream, if it is still there."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def _styled(stream: TextIO) -> TextIO:
    """A stream for what moves the cursor, or has colours."""
    from inference_benchmarker.cli.core.redacting_stream import RedactingStream

    return stream.styled() if isinstance(stream, RedactingStream) else stream


class _Passing:
    """A line of a terminal that does not stay."""

    def __init__(self) -> None:
        self._shown = False

    def show(self, message: str) -> None:
        """Overwrite it."""
        self._shown = True
        text = cut(plain_lines(hidden(message)), _width(sys.stderr) - 1)
        print(_EMPTIED + text, end="", file=_styled(sys.stderr), flush=True)

    def empty(self) -> None:
        """Leave nothing in it."""
        if self._shown:
            self._shown = False
            print(_EMPTIED, end="", file=_styled(sys.stderr), flush=True)


_PASSING = _Passing()


@contextmanager
def progress(quiet: bool | None) -> Iterator[Callable[[str], None]]:
    """Yields a function that says how a search goes on: on a terminal the next line overwrites what is being tried."""
    from client_capacity.search import PASSING

    def overwrite(message: str) -> None:
        if message.startswith(PASSING):
            _PASSING.show(message)
        else:
            say(message)

    try:
        yield say_nothing if quiet else overwrite if sys.stderr.isatty() else say
    finally:
        _PASSING.empty()


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

    def __call__(self, what: str, done: int, of: int) -> None:
        now = monotonic()
        if self._next_s is None:
            self._next_s = now + SLOW_S
        if done >= of:
            self.empty()
        elif now >= self._next_s:
            self._next_s = now + _AGAIN_S
            _PASSING.show(f"{what}: {done / of:.0%}")

    def empty(self) -> None:
        """Leave nothing in the line."""
        _PASSING.empty()
