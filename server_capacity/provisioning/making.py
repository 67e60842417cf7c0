"""An endpoint that an endpoint_factory makes for a keeper: its process, what that has made, and the removal of all."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.engine.processes.child_logs import ChildLogs, HiddenLines, hidden
from inference_benchmarker.engine.processes.children import child_environment, note_addresses, note_asked_for
from inference_benchmarker.engine.processes.leftovers import end_descendants, end_leftovers, new_mark
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.words.text import one_line
from server_capacity.provisioning.cleanup_file import OF_FILE
from server_capacity.provisioning.maker import REMOVAL_S
from server_capacity.provisioning.messages import Job
from server_capacity.provisioning.performing import NotDoneError, account_of_credentials, check_call, placed
from server_capacity.provisioning.restoring import note_bad_end, outcome_text, restore
from server_capacity.provisioning.undo import MARK, Call, Processes, undo_given

if TYPE_CHECKING:
    from server_capacity.provisioning.cleanup_file import CleanupFile
    from server_capacity.provisioning.messages import EndpointOrder

LAST_S = 2.0
"""So long a process may take to end that has said all."""


class Making(threading.Thread):
    """One endpoint, from the order to make it until it is removed: at ``end``, or when ``channel`` is closed.

    On the channel the command gets JSON objects, a line each: ``say`` (progress), ``warn`` (what went wrong),
    ``made`` with ``seconds``, or ``failed`` with a ``hint``, and in the end ``concluded``, the numbers of its entries,
    with a ``warn`` for each that could not be removed. ``accounts``: those of AWS by region, as far as they are known.
    """

    def __init__(
        self, cleanup: CleanupFile, order: EndpointOrder, channel: socket.socket, accounts: dict[str, str | None]
    ) -> None:
        super().__init__(daemon=True)
        self._cleanup = cleanup
        self._order = order
        self._channel = channel
        self._accounts = accounts
        self._mark = new_mark()
        note_asked_for(Path(order.factories_file))
        self._hide, self._spoken = hidden(), HiddenLines()
        self._numbers: list[int] = []
        self._has_answered, self._is_wanted = False, True
        self._made, self._trouble = "", ""

    def end(self) -> None:
        """Have the endpoint removed; ``join`` waits for it."""
        with suppress(OSError):
            self._channel.shutdown(socket.SHUT_RD)

    def run(self) -> None:
        """The thread."""
        try:
            what = f"{OF_FILE}{self._order.factories_file}"
            self._numbers.append(self._cleanup.hold(what, Processes(self._mark), None))
            self._attend()
        except (BenchmarkError, OSError) as error:
            self._fail(str(error))
        finally:
            self._remove()
            self._channel.close()

    def _attend(self) -> None:
        """The life of the factory's process."""
        log = self._cleanup.folder / f"endpoint_factory_{self._numbers[0]}.log"
        with ExitStack() as stack:
            logs = ChildLogs()
            stack.callback(logs.close)
            ours, theirs = socket.socketpair()
            stack.callback(ours.close)
            output = logs.pipe_to(log)
            with theirs:
                maker = self._start(theirs, output)
            os.close(output)
            logs.start()
            stack.callback(self._kill, maker)
            job = Job(self._order, str(self._cleanup.folder), self._cleanup.lock, self._mark)
            with suppress(OSError):  # that a process has ended already is reported when it is listened to
                ours.sendall(json.dumps(encoded(job)).encode() + b"\n")
            ended = self._listen(ours)
            self._tell_lines(self._spoken.rest())
            if ended:
                restore(self._cleanup, of=self._numbers[1:], say=self._progress)
                _say(ours, over=True)
                with suppress(subprocess.TimeoutExpired):
                    maker.wait(LAST_S)
            elif not self._trouble:
                with suppress(subprocess.TimeoutExpired):
                    maker.wait(LAST_S)
                self._died(maker.poll(), logs.last_words(log))

    def _start(self, channel: socket.socket, output: int) -> subprocess.Popen[bytes]:
        """A session of its own, so that Ctrl-C reaches the command alone; it has the cleanup file locked with us."""
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "server_capacity.provisioning.maker"],
            stdin=channel.fileno(),
            stdout=output,
            stderr=output,
            env={**child_environment(), MARK: self._mark},
            pass_fds=(self._cleanup.lock,),
            start_new_session=True,
        )

    def _listen(self, maker: socket.socket) -> bool:
        """Do what the factory's process says until the factory has ended; False where its process has, or is to be."""
        watched, deadline, buffer = [maker, self._channel], None, b""
        while True:
            patience = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            ready, _, _ = select.select(watched, [], [], patience)
            if not ready:
                self._trouble = f"endpoint_factory did not end within {REMOVAL_S:g} s"
                self._tell(warn=f"{self._trouble}; what it reported is being removed.")
                return False
            if self._channel in ready and not _received(self._channel):
                self._is_wanted = False
                watched, deadline = [maker], time.monotonic() + REMOVAL_S
                _say(maker, end=True)
            if maker in ready:
                data = _received(maker)
                if not data:
                    return False
                *lines, buffer = (buffer + data).split(b"\n")
                for said in map(json.loads, lines):
                    if "ended" in said:
                        return True
                    self._heed(said, maker)

    def _heed(self, said: dict[str, Any], maker: socket.socket) -> None:
        if "created" in said:
            _say(maker, number=said["number"], **self._hold(said["created"]))
            return
        if "say" in said and self._has_answered and self._is_wanted:
            return  # while load is sent nobody reads the channel, which would fill up; the log has it
        if "say" in said:
            self._tell_lines(self._spoken.after(said["say"]))
            return
        self._tell_lines(self._spoken.rest())
        if "trouble" in said:
            self._trouble = said["trouble"]
            return
        self._made = said.get("made", self._made)
        note_addresses(said.get("made"))
        if "made" in said or "failed" in said:
            self._has_answered = True
        self._tell(
            **{
                key: self._hide(value) if isinstance(value, str) and key != "made" else value
                for key, value in said.items()
            }
        )

    def _tell_lines(self, lines: list[str]) -> None:
        for line in lines:
            self._tell(say=line)

    def _hold(self, given: Any) -> dict[str, str]:
        try:
            undo = undo_given(given, _region() if isinstance(given, dict) and "service" in given else None)
            what, account = one_line(self._hide(undo.by_hand), 80), None
            if isinstance(undo, Call):
                check_call(undo)
                what = one_line(self._hide(f"{undo.operation} {', '.join(map(str, undo.parameters.values()))}"), 80)
                undo, account = placed(undo), self._account(undo.region)
            self._numbers.append(self._cleanup.hold(what, undo, account))
        except (BenchmarkError, NotDoneError, OSError, TypeError, ValueError) as error:
            return {"failed": str(error)}
        return {}

    def _account(self, region: str) -> str | None:
        if region not in self._accounts:
            self._accounts[region] = account_of_credentials(region)
        return self._accounts[region]

    def _kill(self, maker: subprocess.Popen[bytes]) -> None:
        """End the factory's process and those that it started."""
        if maker.poll() is None:
            end_descendants(maker.pid)
            maker.kill()
        maker.wait()
        end_leftovers(self._mark, {maker.pid}, MARK)

    def _died(self, code: int | None, words: list[str]) -> None:
        """Tell of a process that ended, or fell silent, though its endpoint was needed."""
        self._trouble = f"the process of endpoint_factory ended with {code} before it had removed its endpoint"
        text = f"The process of endpoint_factory ended with {code}. {' '.join(words[-3:])}".rstrip()
        if self._has_answered:
            self._tell(warn=self._hide(f"{text} Its endpoint is being removed."))
        else:
            self._fail(text)

    def _remove(self) -> None:
        """Undo what the factory reported, which finds nothing where the factory removed it itself."""
        restore(self._cleanup, of=self._numbers, say=self._progress)
        self._note_trouble()
        entries = [self._cleanup.entries[number] for number in self._numbers]
        for entry in entries:
            if entry.state in ("held", "unknown"):
                self._tell(warn=self._hide(outcome_text(entry)))
            elif entry.reason:
                self._tell(warn=self._hide(f"{entry.reason}."))
        self._tell(concluded=self._numbers)

    def _note_trouble(self) -> None:
        """Write down that the factory did not end well, unless its processes themselves could not be ended."""
        if self._trouble and self._numbers and self._cleanup.entries[self._numbers[0]].state == "undone":
            with suppress(OSError):
                note_bad_end(self._cleanup, self._numbers[0], self._trouble, self._numbers[1:], self._made)

    def _progress(self, text: str) -> None:
        self._tell(say=self._hide(text))

    def _fail(self, text: str) -> None:
        self._tell(failed=self._hide(text), hint="")

    def _tell(self, **said: Any) -> None:
        _say(self._channel, **said)


def _say(channel: socket.socket, **said: Any) -> None:
    """Say something, if anybody listens."""
    with suppress(OSError):
        channel.sendall(json.dumps(said).encode() + b"\n")


def _received(channel: socket.socket) -> bytes:
    """The bytes that came; none where the other end is closed."""
    try:
        return channel.recv(65536)
    except OSError:
        return b""


def _region() -> str | None:
    import boto3

    region: str | None = boto3.Session().region_name
    return region
