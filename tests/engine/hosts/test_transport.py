"""Lines of JSON over a pipe: noise before the marker is left out, and nobody waits for a pipe that is full."""

from __future__ import annotations

import json
import os
import threading
import time
import tracemalloc
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.engine.hosts import transport
from inference_benchmarker.engine.hosts.preparing import clean_hosts, prepare_hosts
from inference_benchmarker.engine.hosts.ssh import SshTransport
from inference_benchmarker.engine.hosts.transport import Lines

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE_S = 10.0
MARKER = "3f2a"


class Side:
    """One side of a pipe: what it receives, and that the other one has ended."""

    def __init__(self, reading: int, writing: int, marker: str = "") -> None:
        self.lines = Lines(reading, writing, marker)
        self.messages: list[tuple[dict[str, Any], int]] = []
        self.over = threading.Event()
        self.lines.start(lambda message, at: self.messages.append((message, at)), self.over.set)


@pytest.fixture
def pipes() -> tuple[int, int, int, int]:
    """Ours to read and to write, and theirs."""
    (reading, their_writing), (their_reading, writing) = os.pipe(), os.pipe()
    return reading, writing, their_reading, their_writing


def test_messages_come_in_order_in_both_directions_until_the_end(pipes: tuple[int, int, int, int]) -> None:
    here, there = Side(*pipes[:2]), Side(*pipes[2:])
    before = time.monotonic_ns()
    for number in range(1_000):
        here.lines.send({"number": number, "text": "línea\n"})
    there.lines.send(lambda: {"at": time.monotonic_ns()})
    here.lines.end(PATIENCE_S)
    assert there.over.wait(PATIENCE_S)
    assert [message["number"] for message, _ in there.messages] == list(range(1_000))
    there.lines.end(PATIENCE_S)
    assert here.over.wait(PATIENCE_S)
    ((message, came),) = here.messages
    assert before < message["at"] < came < time.monotonic_ns()


def test_what_a_login_prints_before_the_marker_is_no_message(pipes: tuple[int, int, int, int]) -> None:
    reading, writing, their_reading, their_writing = pipes
    here = Side(reading, writing, MARKER)
    noise = 'Welcome\n{"say": "hello"}\n\xff\nno newline'.encode("latin-1")
    for part in (
        noise,
        MARKER.encode()[:2],
        MARKER.encode()[2:] + b'{"say": "hello", "cores"',
        b": 2}\n",
        b'{"say": "x"}\n',
    ):
        os.write(their_writing, part)
    os.close(their_writing)
    assert here.over.wait(PATIENCE_S)
    assert [message for message, _ in here.messages] == [{"say": "hello", "cores": 2}, {"say": "x"}]
    os.close(their_reading)
    here.lines.end(PATIENCE_S)


def test_whoever_sends_does_not_wait_for_a_pipe_that_is_full(pipes: tuple[int, int, int, int]) -> None:
    """As behind a link that is cut; what was sent comes once it is mended."""
    reading, writing, their_reading, their_writing = pipes
    here = Side(reading, writing)
    for _ in range(20):
        here.lines.send({"data": "x" * 100_000})
    with os.fdopen(their_reading, "rb") as there:
        reported = [json.loads(there.readline()) for _ in range(20)]
    assert {len(message["data"]) for message in reported} == {100_000}
    os.close(their_writing)
    here.lines.end(PATIENCE_S)


@pytest.mark.parametrize("line", [b"null", b"[1]", b"[" * 3_000, b"nonsense", b'{"say": "hello"'])
def test_what_is_no_message_is_an_end(pipes: tuple[int, int, int, int], line: bytes) -> None:
    reading, writing, their_reading, their_writing = pipes
    here = Side(reading, writing, MARKER)
    os.write(their_writing, MARKER.encode() + line + b"\n")
    assert here.over.wait(PATIENCE_S)
    assert here.messages == []
    for descriptor in (their_reading, their_writing):
        os.close(descriptor)


def test_noise_without_an_end_fills_no_memory_and_hides_no_message(
    pipes: tuple[int, int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "_LONGEST_NOISE", 1_000)
    reading, writing, their_reading, their_writing = pipes
    here = Side(reading, writing, MARKER)
    tracemalloc.start()
    for _ in range(200):
        os.write(their_writing, b"x" * 50_000)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()
    os.write(their_writing, MARKER.encode() + b'{"say": "hello"}\n')
    os.close(their_writing)
    assert here.over.wait(PATIENCE_S)
    assert [message for message, _ in here.messages] == [{"say": "hello"}]
    os.close(their_reading)
    here.lines.end(PATIENCE_S)


def test_a_message_without_an_end_is_the_end(pipes: tuple[int, int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "LONGEST", 100_000)
    reading, writing, their_reading, their_writing = pipes
    here = Side(reading, writing, MARKER)
    os.write(their_writing, MARKER.encode() + b"\n")
    with suppress(BrokenPipeError):
        while not here.over.is_set():
            os.write(their_writing, b"x" * 50_000)
    assert here.over.wait(PATIENCE_S)
    assert here.messages == []
    for descriptor in (their_reading, their_writing):
        os.close(descriptor)


WORDS = """#!/bin/sh
head -c 5000000 /dev/zero | tr '\\0' x >&2
echo >&2
echo 'the last word' >&2
exit 255
"""


def test_what_ssh_prints_without_an_end_fills_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ssh").write_text(WORDS)
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    way, over = SshTransport("h1", None), threading.Event()
    tracemalloc.start()
    way.start(lambda *_: None, over.set)
    assert over.wait(PATIENCE_S)
    assert tracemalloc.get_traced_memory()[1] < 4_000_000
    tracemalloc.stop()
    assert [len(word) for word in way.words()] == [500, len("the last word")]


SHELLS = {
    "a router": 'echo "Unknown command: $*"',
    "nothing": "exit 0",
    "another answer": "printf '%s[1]' $(echo \"$*\" | grep -oE '[0-9a-f]{4}-[0-9a-f]{12}' | head -1 | tr -d -)",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_host_without_a_shell_is_named(shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\n{SHELLS[shell]}\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (prepared,) = prepare_hosts(["h1"], None, None, lambda _: None)
    assert prepared.problem is not None
    assert "something else than it was asked" in prepared.problem
    if shell != "another answer":
        (cleaned,) = clean_hosts(["h1"])
        assert cleaned.problem == prepared.problem


SSH = """#!/bin/sh
touch "$PLACE/$$"
while [ ! -e "$PLACE/go" ]; do sleep 0.02; done
"""


def test_no_more_than_eight_logins_are_begun_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The MaxStartups of sshd drops more; each waits for the end of one before it."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ssh").write_text(SSH)
    (tmp_path / "bin" / "ssh").chmod(0o755)
    place = tmp_path / "begun"
    place.mkdir()
    monkeypatch.setenv("PLACE", str(place))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    ends = [threading.Event() for _ in range(20)]
    for number, end in enumerate(ends):
        SshTransport(f"host{number}", None).start(lambda *_: None, end.set)
    until = time.monotonic() + PATIENCE_S
    while len(list(place.iterdir())) < 8:
        assert time.monotonic() < until
        time.sleep(0.02)
    time.sleep(0.2)
    assert len(list(place.iterdir())) == 8
    (place / "go").touch()
    assert all(end.wait(PATIENCE_S) for end in ends)
    assert len(list(place.iterdir())) == 21
