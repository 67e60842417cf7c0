"""The keeper as a command holds it: changes are made through it, and put back when its context ends."""

from __future__ import annotations

import json
import select
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.engine.processes.children import child_environment
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.given import resolved
from server_capacity.provisioning.cleanup_file import NAME, CleanupFile, left_in, read
from server_capacity.provisioning.keeper_process import ALL_PUT_BACK, SOME_LEFT
from server_capacity.provisioning.maker import REMOVAL_S
from server_capacity.provisioning.messages import ChangeOrder, EndpointOrder
from server_capacity.provisioning.restoring import BUSY_S, PATIENCE_S, outcome_text, restore
from server_capacity.provisioning.undo import Processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from server_capacity.provisioning.cleanup_file import Entry
    from server_capacity.provisioning.undo import Undo

LAST_ATTEMPT_S = 60.0
"""An attempt that was begun within the patience may last that long."""

LONGEST_REMOVAL_S = REMOVAL_S + BUSY_S + LAST_ATTEMPT_S
"""So long the keeper of an endpoint is waited for."""

LOST = "the process that keeps the endpoint for this search ended, and the endpoint was removed"
_ENDED = "The keeper process, which restores everything, has ended."


@dataclass(frozen=True, slots=True)
class MadeEndpoint:
    """An endpoint that an endpoint_factory made: its name or URL, and the factory's arguments.

    ``seconds``: from the call of the factory until it yielded.
    """

    name: str
    arguments: dict[str, Any]
    seconds: float
    _heard: socket.socket

    def lost(self) -> str:
        """Tells why it is there no more, or will not be for long, though it is needed; empty where it is."""
        ready, _, _ = select.select([self._heard], [], [], 0)  # while it is needed nothing else is said of it
        return LOST if ready else ""


class Keeper:
    """A process of its own that undoes what was changed through it, however this one ends.

    It starts when this is made, which takes it a while, and is not waited for until the first change. ``say`` gets
    what became of each change, and ``warn`` of what was not put back and of a factory that failed while
    it removed. ``all_is_put_back``: None before the context ends.
    """

    def __init__(self, folder: Path, say: Callable[[str], None], warn: Callable[[str], None]) -> None:
        self._folder = folder
        self._say = say
        self._warn = warn
        self.all_is_put_back: bool | None = None
        self._orders, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "server_capacity.provisioning"],
                stdin=theirs.fileno(),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=child_environment(),
                start_new_session=True,
            )
        self._ordering = threading.Lock()
        self._has_folder = False
        self._concluded: set[int] = set()
        self._longest_s = PATIENCE_S + LAST_ATTEMPT_S
        self._is_left = False

    @property
    def pid(self) -> int:
        """The id of the keeper's process."""
        return self._process.pid

    def change(self, what: str, change: Undo, undo: Undo, account: str | None) -> None:
        """Make a change of ``what`` once its undo is on disk. BenchmarkError where it cannot be made."""
        self._order(ChangeOrder(what, change, undo, account).to_json())

    @contextmanager
    def endpoint(
        self,
        factories_file: Path,
        arguments: Mapping[str, Any],
        run: str,
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> Iterator[MadeEndpoint]:
        """Have the file's endpoint_factory make an endpoint, and remove it when the context ends.

        ``run``: the name that ``run_tags`` gives its resources. ``settings``: texts in place of the file's constants.
        Several may be open at once, in threads of their own.
        BenchmarkError where the factory fails; what it had made is removed by then.
        """
        self._longest_s = LONGEST_REMOVAL_S
        ours, theirs = socket.socketpair()
        made = None
        with ours, ours.makefile("rb") as heard:
            try:
                with theirs:
                    order = EndpointOrder(str(resolved(factories_file)), dict(arguments), run, dict(settings))
                    self._order(encoded(order), theirs)
                made = self._made(ours, heard, dict(arguments))
                yield made
            finally:
                if made is not None:
                    self._say(f"Removing {made.name}.")
                with suppress(OSError):
                    ours.shutdown(socket.SHUT_WR)
                self._await_removal(heard)

    def _await_removal(self, heard: BinaryIO) -> None:
        """Say what is removed until all is; whoever interrupts this does not wait at the keeper's end either."""
        try:
            for _ in self._events(heard):
                pass
        except KeyboardInterrupt:
            self._is_left = True
            raise

    def _made(self, ours: socket.socket, heard: BinaryIO, arguments: dict[str, Any]) -> MadeEndpoint:
        for event in self._events(heard):
            if "failed" in event:
                raise BenchmarkError(event["failed"], event["hint"])
            if "made" in event:
                return MadeEndpoint(event["made"], arguments, event["seconds"], ours)
        raise BenchmarkError(_ENDED, "Try again.")

    def _events(self, heard: BinaryIO) -> Iterator[dict[str, Any]]:
        """Whatever the keeper says of an endpoint; progress is said."""
        with suppress(OSError, ValueError):  # a keeper that is killed resets the line, or leaves half of one
            for line in heard:
                event = json.loads(line)
                if "say" in event:
                    self._say(event["say"])
                if "warn" in event:
                    self._warn(event["warn"])
                self._concluded.update(event.get("concluded", ()))
                yield event

    def _order(self, order: dict[str, Any], channel: socket.socket | None = None) -> None:
        with self._ordering:
            if not self._has_folder:
                self._ask({"folder": str(resolved(self._folder))})
                self._has_folder = True
            self._ask(order, *([] if channel is None else [channel.fileno()]))

    def _ask(self, order: dict[str, Any], *descriptors: int) -> None:
        assert self._process.stdout is not None
        answer = b""
        with suppress(OSError):
            line = json.dumps(order).encode() + b"\n"
            sent = socket.send_fds(self._orders, [line], descriptors)
            self._orders.sendall(line[sent:])
            answer = self._process.stdout.readline()
        if not answer:
            raise BenchmarkError(_ENDED, "Try again.")
        if failed := json.loads(answer).get("failed"):
            raise BenchmarkError(f"{order.get('what', 'The keeper')}: {failed}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Have everything put back, and say what became of it.

        Whoever interrupts the waiting does not interrupt the keeper.
        """
        if self._is_left:
            self._orders.close()
            self._warn(
                f"Process {self.pid} continues to remove what is left, which is listed in {self._folder / NAME}."
            )
            return
        ended_before = self._process.poll() is not None
        code = self._end()
        if not self._has_folder:
            return
        if ended_before and code in (ALL_PUT_BACK, SOME_LEFT):
            self._say("The keeper process was stopped while it was needed, and restored everything.")
        try:
            if code not in (ALL_PUT_BACK, SOME_LEFT):
                self._put_back_itself()
            entries = read(self._folder)
        except BenchmarkError as error:  # the folder was taken away, which keeps the keeper from nothing
            self.all_is_put_back = code == ALL_PUT_BACK
            self._warn(str(error))
            return
        self.all_is_put_back = not left_in(entries)
        for number, entry in enumerate(entries):
            if number not in self._concluded and _is_of_interest(entry):
                (self._warn if entry.state in ("held", "unknown") else self._say)(outcome_text(entry))
        if not self.all_is_put_back:
            self._warn(f"{self._folder / NAME} still lists it; `benchmark endpoints clean {self._folder}` tries again.")

    def _put_back_itself(self) -> None:
        with CleanupFile.taken(self._folder, self._longest_s) as cleanup:
            if left_in(cleanup.entries):
                self._say("The keeper process was killed; this command restores everything instead.")
                restore(cleanup)

    def _end(self) -> int:
        """Let go of the keeper and wait until it has put everything back; one that stands still is killed."""
        assert self._process.stdout is not None
        self._orders.close()
        try:
            return self._process.wait(self._longest_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
        finally:
            self._process.stdout.close()


def _is_of_interest(entry: Entry) -> bool:
    """Tells whether the user wants to know what became of it: a change that was made, no process that has ended."""
    return entry.state != "refused" and (entry.state == "unknown" or not isinstance(entry.undo, Processes))
