"""The keeper as a command holds it: changes are made through it, and put back when its context ends."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from inference_benchmarker.engine.processes import child_environment
from inference_benchmarker.errors import BenchmarkError
from server_capacity.keeper.cleanup_file import NAME, CleanupFile, left_in, read
from server_capacity.keeper.keeping import ALL_PUT_BACK, SOME_LEFT, order_of
from server_capacity.keeper.putting_back import PATIENCE_S, put_back, told

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from server_capacity.keeper.undo import Undo

LAST_ATTEMPT_S = 60.0
"""An attempt that was begun within the patience may last that long."""


class Keeper:
    """A process of its own that undoes what was changed through it, however this one ends.

    It starts when this is made, which takes it a while, and is not waited for until the first change. ``say`` is told
    what became of each change. ``all_is_put_back``: None before the context ends.
    """

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._say = say
        self.all_is_put_back: bool | None = None
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "server_capacity.keeper"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=child_environment(),
            start_new_session=True,
        )
        self._has_folder = False

    @property
    def pid(self) -> int:
        """The id of the keeper's process."""
        return self._process.pid

    def change(self, what: str, change: Undo, undo: Undo, account: str | None) -> None:
        """Make a change of ``what`` once its undo is on disk. BenchmarkError where it cannot be made."""
        if not self._has_folder:
            self._order({"folder": str(self._folder.resolve())})
            self._has_folder = True
        self._order(order_of(what, change, undo, account))

    def _order(self, order: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        answer = b""
        with suppress(OSError):
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        if not answer:
            raise BenchmarkError("The keeper, which would put the scaling back, has ended.", "Try again.")
        if failed := json.loads(answer).get("failed"):
            raise BenchmarkError(f"{order.get('what', 'The keeper')}: {failed}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Have everything put back, and say what became of it.

        Whoever interrupts the waiting does not interrupt the keeper.
        """
        ended_before = self._process.poll() is not None
        code = self._end()
        if not self._has_folder:
            return
        if ended_before and code in (ALL_PUT_BACK, SOME_LEFT):
            self._say("The keeper was told to end while it was needed, and put back what it held then.")
        try:
            if code not in (ALL_PUT_BACK, SOME_LEFT):
                self._put_back_itself()
            entries = [entry for entry in read(self._folder) if entry.state != "refused"]
        except BenchmarkError as error:  # the folder was taken away, which keeps the keeper from nothing
            self.all_is_put_back = code == ALL_PUT_BACK
            self._say(str(error))
            return
        self.all_is_put_back = not left_in(entries)
        for entry in entries:
            self._say(told(entry))
        if not self.all_is_put_back:
            self._say(f"{self._folder / NAME} keeps it; `benchmark endpoints clean {self._folder}` tries again.")

    def _put_back_itself(self) -> None:
        with CleanupFile.taken(self._folder) as cleanup:
            if left_in(cleanup.entries):
                self._say("The keeper was killed; this command puts back what it held.")
                put_back(cleanup)

    def _end(self) -> int:
        """Let go of the keeper and wait until it has put everything back; one that stands still is killed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            return self._process.wait(PATIENCE_S + LAST_ATTEMPT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
        finally:
            self._process.stdout.close()
