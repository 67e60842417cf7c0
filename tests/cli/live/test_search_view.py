"""The view of a search: a line that is written again on a terminal, and one now and then elsewhere."""

from __future__ import annotations

import io
import re

from inference_benchmarker.cli.live.search_view import SearchLines, SearchView
from inference_benchmarker.wave.spool.spool_state import SpoolState
from inference_benchmarker.words.units import NS
from tests.scenes import Sized

STATE = SpoolState([], 1)


def line(_: SpoolState, now_ns: int) -> str:
    return f"{now_ns // NS} of 60 s: 128/s, between 64 and 256/s and a word more"


def shown(text: str) -> list[str]:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "").splitlines()


def test_a_line_is_cut_at_the_terminals_width_and_what_is_said_goes_on_below() -> None:
    stream = io.StringIO()
    view = SearchView(line, Sized(stream, 40))
    view.starting("Loading the endpoint's code: 0 of 1 worker is ready.", 0.5)
    view.update(STATE, 3 * NS)
    view.say("The client was the limit: it goes on with 2 workers.")
    view.update(STATE, 4 * NS)
    assert shown(stream.getvalue()) == [
        "Loading the endpoint's code: 0 of 1 wo…",
        "3 of 60 s: 128/s, between 64 and 256/s…",
        "The client was the limit: it goes on",
        "  with 2 workers.",
        "4 of 60 s: 128/s, between 64 and 256/s…",
    ]
    view.close()
    assert stream.getvalue().endswith("\x1b[1A\x1b[J\x1b[?25h"), "nothing of it stays, and the cursor is there again"


def test_elsewhere_a_line_comes_every_ten_seconds() -> None:
    stream = io.StringIO()
    view = SearchLines(line, stream)
    for half_seconds in range(61):
        view.update(STATE, half_seconds * NS // 2)
    view.close()
    assert [text.split()[0] for text in shown(stream.getvalue())] == ["0", "10", "20", "30"]
