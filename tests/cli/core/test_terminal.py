"""A line is folded at a blank once it is hidden: a passphrase has blanks, and half of one is found no more."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.cli.core.redacting_stream import redacted_streams
from inference_benchmarker.cli.core.terminal import passing, print_report, say
from inference_benchmarker.cli.live.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Callable

PASSPHRASE = "correct horse battery staple anchor lamp"


class Terminal(io.StringIO):
    """One of 80 columns."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    "show", [say, passing, lambda text: Screen(sys.stderr, colours=False).print(text), print_report]
)
def test_a_passphrase_is_hidden_wherever_the_line_is_folded(
    show: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_PASSPHRASE", PASSPHRASE)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    with redacted_streams():
        for before in range(1, 90, 3):
            show(f"{'z' * before} {PASSPHRASE} and what follows it on this line of the command\n")
    shown = terminal.getvalue()
    assert "[hidden]" in shown
    assert [word for word in PASSPHRASE.split() if word in shown] == []
