"""Whoever follows a wave in its pods: what is shown of it on a terminal, and what is said to it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.kubernetes.onlooker import Onlooker
from inference_benchmarker.cli.live.screen import Screen
from tests.case import case

if TYPE_CHECKING:
    from inference_benchmarker.cli.live.keys import Keys

PANEL = [[["3s", "bold"], ["  60 sent", ""]], [["p99", "dim"]]]
LINE = "10s/60s running, sent 200 so far, completed 20.0/s of 20/s, in flight 0, errors 0"


class Pressing:
    """A keyboard on which these keys are pressed, one a call, and which is gone then."""

    def __init__(self, *keys: str) -> None:
        self._keys = [*keys]

    def pressed(self) -> str:
        if not self._keys:
            raise EOFError
        return self._keys.pop(0)


def onlooker(keys: Pressing | None = None) -> tuple[Onlooker, list[str], io.StringIO]:
    """One with a screen, what it tells, and what is on the screen."""
    told: list[str] = []
    stream = io.StringIO()
    held: Keys | None = keys  # type: ignore[assignment]
    return Onlooker(told.append, Screen(stream, colours=False), held), told, stream


def test_lines_on_the_progress_are_for_those_without_a_panel() -> None:
    words = ["Sending 20 requests/s for 60 s, from 2 workers.", LINE]
    told: list[str] = []
    without = Onlooker(told.append)
    without.show(PANEL)
    for each in words:
        without.tell(each)
    assert told == words
    assert [*without.asked(anew=True)] == []
    beside, told, _ = onlooker()
    for each in words:
        beside.tell(each)
    assert told == words[:1]


def test_the_panel_stands_below_the_words_until_it_is_taken_away() -> None:
    looking, _, stream = onlooker()
    looking.show(PANEL)
    assert "3s  60 sent" in stream.getvalue()
    before = len(stream.getvalue())
    looking.tell("load-1 is lost: it was silent.")
    assert "3s  60 sent" in stream.getvalue()[before:]
    before = len(stream.getvalue())
    looking.close()
    looking.tell("The end.")
    assert "3s" not in stream.getvalue()[before:]


def test_a_panel_that_is_none_shows_nothing_that_moves_a_terminal() -> None:
    strange: dict[str, Any] = {
        "none": None,
        "no lines": {"a": 1},
        "no pieces": [3, [3, ["a"], ["a", 3], ["a", "b", "c"]]],
        "escapes": [[["\x1b[2J\x07" + "x" * 9, "\x1b[31m"]]],
        "too much": [[["x" * 10_000, "bold"]] * 1_000] * 1_000,
    }
    for name, lines in strange.items():
        with case(name):
            looking, _, stream = onlooker()
            looking.show(lines)
            assert "\x1b[2J" not in stream.getvalue()
            assert "\x07" not in stream.getvalue()
            assert len(stream.getvalue()) < 10_000


def test_the_wave_hears_of_the_width_once_and_of_keys_as_they_are_pressed() -> None:
    looking, _, _ = onlooker(Pressing("", "+", "", "-"))
    width, held = {"do": "columns", "columns": 80}, {"do": "keys", "keys": ""}
    assert [*looking.asked(anew=True)] == [width, held]
    assert [*looking.asked(anew=False)] == [{"do": "keys", "keys": "+"}]
    assert [*looking.asked(anew=False)] == []
    assert [*looking.asked(anew=True)] == [width, {"do": "keys", "keys": "-"}]
    assert [*looking.asked(anew=False)] == []  # its terminal is gone, and the wave goes on
    assert [*looking.asked(anew=True)] == [width]
