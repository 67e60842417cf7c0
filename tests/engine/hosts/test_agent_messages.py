"""Hosts that are broken or hostile: nothing that no agent says is taken from them, and each is named at once."""

from __future__ import annotations

import json
import os
import re
import time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.engine.hosts.agent import Agent
from inference_benchmarker.engine.hosts.agent_messages import is_said
from inference_benchmarker.engine.hosts.checking import check_hosts
from inference_benchmarker.engine.hosts.protocol import FILES, SOCKET, WAVE
from inference_benchmarker.engine.hosts.transport import Lines
from inference_benchmarker.plan.hosts import Hosts, hosts_in
from inference_benchmarker.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inference_benchmarker.engine.hosts.checking import Checked

PATIENCE_S = 10.0
HELLO: dict[str, Any] = {
    "say": "hello",
    "versions": {"benchmark": __version__, "python": "3.11.2"},
    "variables": ["HOME"],
    "cores": 2,
    "open_files": 1024,
    "constants": {"cores": 2, "memory_total_bytes": 1 << 30, "ephemeral_ports": None},
    "folder": "/tmp/benchmark-x1_y",  # noqa: S108 - nothing is made there
}
CLOCK = {"say": "clock", "asked": 1, "heard": 5, "answered": 6, "raw": 7}
SAMPLE = [1.5, "host", 50, 1 << 30, None, None, 0.0, 1 << 30, 3, None]
NO_CONSTANTS: list[dict[str, Any]] = [{"stretches": []}, {"cores": 0}, {"cores": None}, {"memory_total_bytes": None}]
NO_NUMBERS: list[float] = [1e308, float("inf"), float("nan"), 10**20, 10**41]
FORGED: list[dict[str, Any]] = [
    {},
    {"say": None},
    {"say": ["hello"]},
    {"say": "goodbye"},
    {**HELLO, "versions": {}},
    {**HELLO, "node": "a b"},
    {**HELLO, "versions": {"benchmark": __version__, "python": "\x1b[2J"}},
    {**HELLO, "cores": 0},
    {**HELLO, "cores": "2"},
    {**HELLO, "cores": True},
    {**HELLO, "cores": 10**400},
    {**HELLO, "constants": 5},
    *({**HELLO, "constants": {**HELLO["constants"], **forged}} for forged in NO_CONSTANTS),
    *(
        {"say": "samples", "samples": [[*SAMPLE[:place], forged, *SAMPLE[place + 1 :]]]}
        for place in (0, 2, 3, 6, 7, 8)
        for forged in NO_NUMBERS
    ),
    *(
        {**HELLO, "folder": folder}
        for folder in ("", "x", "/x\n", "/a:/b", "/${HOME}", "/%h", "/a\\b", "/" + 200 * "a")
    ),
    {**CLOCK, "raw": None},
    {**CLOCK, "heard": 5.5},
    {**CLOCK, "answered": 10**19},
    {**CLOCK, "heard": 7},
    {"say": "memory", "left": "much", "workers": {}},
    {"say": "memory", "left": 1, "workers": 5},
    {"say": "log", "worker": [1], "data": ""},
    {"say": "log", "worker": 1, "data": "!"},
    {"say": "samples", "samples": [[1, 2, 3]]},
    {"say": "ended", "workers": ["1"]},
    {"say": "finished", "left_behind": 5},
    {"say": "failed"},
]
SAID: list[dict[str, Any]] = [
    HELLO,
    {**{key: value for key, value in HELLO.items() if key != "folder"}, "failed": "no room"},
    CLOCK,
    {"say": "memory", "left": -5, "workers": {"0": 1}},
    {"say": "memory", "left": None, "workers": {}},
    {"say": "log", "worker": 1, "data": "aGk="},
    {"say": "samples", "samples": [SAMPLE, SAMPLE[:4]]},
    {"say": "ended", "workers": [1]},
    {"say": "finished", "left_behind": ["sleep"]},
    {"say": "failed", "reason": "x"},
    *({"say": word} for word in ("ready", "stored", "closed")),
]
# It answers the first login with what the test gives, and each question to its clock with what is to be answered.
SSH = """#!/bin/sh
echo "$*" >>"$PLACE/arguments"
case "$*" in *" -O forward "*) exit 0;; esac
printf '\\n%s' "$(echo "$*" | grep -oE '[0-9a-f]{4}-[0-9a-f]{28}' | head -1 | tr -d -)"
cat "$PLACE/hello"
while read -r line; do case "$line" in *clock*) cat "$PLACE/clock";; esac; done
"""


@pytest.mark.parametrize("message", SAID, ids=json.dumps)
def test_what_an_agent_says_is_taken(message: dict[str, Any]) -> None:
    assert is_said(json.loads(json.dumps(message)))


@pytest.mark.parametrize("message", FORGED, ids=lambda message: json.dumps(message)[:60])
def test_what_no_agent_says_is_refused(message: dict[str, Any]) -> None:
    assert not is_said(message)


_PARTS = st.none() | st.integers() | st.text(max_size=9) | st.lists(st.integers(), max_size=3)
_NAMES = sorted({name for message in SAID for name in message})


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(SAID), st.dictionaries(st.sampled_from(_NAMES), _PARTS, max_size=3))
def test_of_anything_it_can_be_known_whether_an_agent_says_it(message: dict[str, Any], forged: dict[str, Any]) -> None:
    assert is_said({**message, **forged}) in (False, True)


@pytest.fixture
def checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Checked]:
    """What ``hosts check`` finds of a host that says these lines: at first, and when its clock is asked."""
    (tmp_path / "ssh").write_text(SSH)
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PLACE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    def check(hello: str, clock: str = "") -> Checked:
        (tmp_path / "hello").write_text(hello)
        (tmp_path / "clock").write_text(clock)
        (found,) = check_hosts(Hosts(hosts_in("h1"), join_timeout_s=Decimal(20)))
        return found

    return check


@pytest.mark.parametrize(
    "hello", ["{}", '{"say": "ready"}', json.dumps({**HELLO, "folder": "/srv/${PLACE}"}), '{"say": NaN}']
)
def test_a_host_that_says_what_no_agent_says_is_named_at_once_and_reported_nothing(
    checked: Callable[[str, str], Checked], tmp_path: Path, hello: str
) -> None:
    """The ssh here would put our variables into the path of a socket that the host is asked for."""
    begun = time.monotonic()
    problem = checked(f"{hello}\n", "").problem
    assert time.monotonic() < begun + PATIENCE_S
    assert problem is not None
    assert re.match("it said something that no agent|its connection was closed", problem)
    assert "-O forward" not in (tmp_path / "arguments").read_text()


@pytest.mark.parametrize("clock", [json.dumps(CLOCK), json.dumps({**CLOCK, "heard": float("nan")}), json.dumps(HELLO)])
def test_a_clock_that_answers_what_nobody_asked_is_no_clock(checked: Callable[[str, str], Checked], clock: str) -> None:
    found = checked(f"{json.dumps(HELLO)}\n", f"{clock}\n")
    assert found.problem is not None
    assert found.clock is None


def test_a_version_of_any_length_is_a_part_of_a_sentence(checked: Callable[[str, str], Checked]) -> None:
    hello = {"say": "hello", "versions": {"benchmark": "9\x1b[2J\n" + 3000 * "y"}}
    problem = checked(f"{json.dumps(hello)}\n", "").problem
    assert problem is not None
    assert re.fullmatch(r"it has version 9 \[2J y+…, and this host has .*", problem)


def test_an_agent_tells_that_each_part_of_a_file_has_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else nothing would be heard of a host to which a long file is on the way, and it would be lost."""
    monkeypatch.chdir(tmp_path)  # as the agent does
    (reading, theirs), (heard, writing) = os.pipe(), os.pipe()
    lines = Lines(reading, writing)
    part = {"do": "file", "name": f"{FILES}/x", "data": "aGk="}
    with os.fdopen(theirs, "w") as asking, os.fdopen(heard) as telling:
        for message in ({"do": "wave"}, part, part, {"do": "close"}):
            print(json.dumps(message), file=asking, flush=True)
        Agent(lines, tmp_path).run()
        lines.end(PATIENCE_S)
        reported = [json.loads(line)["say"] for line in telling]
    assert reported == ["ready", "stored", "stored", "finished", "closed"]
    assert not (tmp_path / WAVE).exists()
    assert not (tmp_path / SOCKET).exists()
