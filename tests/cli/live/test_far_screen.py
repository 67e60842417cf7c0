"""A wave in a pod leaves its panel for whoever follows it, and takes their keys."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.cli.live.far_screen import AWAY_S, FarKeys, FarScreen
from inference_benchmarker.system.followed import COLUMNS, KEYS, SCREEN

if TYPE_CHECKING:
    from pathlib import Path


def shown(folder: Path) -> object:
    return json.loads((folder / SCREEN).read_text()) if (folder / SCREEN).exists() else None


def test_a_panel_is_left_for_somebody_who_sees_it_and_as_wide_as_that_terminal(tmp_path: Path) -> None:
    screen = FarScreen(tmp_path)
    screen.show([[("a", "bold")]])
    assert (shown(tmp_path), screen.size()[0]) == (None, 80)
    (tmp_path / COLUMNS).write_text("132")
    screen.show([[("a", "bold")]])
    screen.show([[("b", "bold")]])  # at once, which is too soon
    assert (shown(tmp_path), screen.size()[0]) == ([[["a", "bold"]]], 132)
    screen.clear()
    assert shown(tmp_path) == []
    (tmp_path / COLUMNS).write_text("wide")
    assert screen.size()[0] == 80


def test_keys_come_once_each_and_are_gone_when_nobody_holds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    keys, file = FarKeys(tmp_path), tmp_path / KEYS
    assert keys.pressed() == ""
    for count, added in enumerate(("+", "-2", ""), 1):
        with file.open("a") as to:
            to.write(added)
        os.utime(file, ns=(count, count))
        now[0] += AWAY_S
        assert (keys.pressed(), keys.pressed()) == (added, "")
    now[0] += AWAY_S + 1
    with pytest.raises(EOFError):
        keys.pressed()
