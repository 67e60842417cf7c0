"""The processes of a wave, seen from the one that starts them: the primary here, the workers on their host."""

from __future__ import annotations

import json
import os
import select
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from inference_benchmarker.engine.hosts.group import HostGroup
from inference_benchmarker.engine.hosts.local import LocalHost
from inference_benchmarker.engine.processes.children import write_line
from inference_benchmarker.plan.hosts import THIS_HOST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.engine.hosts.joining import Party
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.wave.run_dir import RunDir


class PrimaryProcess:
    """The primary: commands go to it, what it says comes back.

    ``heard_at`` is when it last said anything, on the monotonic clock.
    """

    def __init__(self, host: LocalHost) -> None:
        self._host = host
        self.heard_at = time.monotonic()
        self._buffer = b""
        self._status, self._status_of_primary = os.pipe()
        os.set_blocking(self._status, False)
        self._heard = select.poll()
        self._heard.register(self._status, select.POLLIN)
        self._process = host.spawn_primary(self._status_of_primary)
        os.close(self._status_of_primary)

    def begin(self, job: dict[str, Any]) -> None:
        """Give it its job; the number of its end of the pipe is added."""
        self.heard_at = time.monotonic()
        self.tell(json.dumps({**job, "status_fd": self._status_of_primary}))

    def tell(self, command: str) -> None:
        """Send it a line."""
        write_line(self._process, command)

    def events(self) -> Iterator[dict[str, Any]]:
        """The events that it reported since the last call."""
        with suppress(BlockingIOError):
            while data := os.read(self._status, 65536):
                self._buffer += data
                self.heard_at = time.monotonic()
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            yield json.loads(line)

    def wait(self, seconds: float) -> None:
        """Until it says something, but no longer than this."""
        self._heard.poll(1000 * seconds)

    def has_ended(self) -> bool:
        """Tells whether its process is gone."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    def last_words(self) -> list[str]:
        """The last lines that it printed, when it has ended."""
        return self._host.last_words_of_primary()

    def close(self) -> None:
        """Hear no more; its process has ended."""
        os.close(self._status)


class WaveProcesses:
    """The primary and the workers of a wave; leaving the context ends every one of them.

    They start when this is made, which takes them a while, and do nothing until they get the plan.
    ``left_behind`` names what the user's code had started and was still there at the end.
    """

    def __init__(self, plan: WavePlan, run_dir: RunDir, party: Party) -> None:
        self._run_dir = run_dir
        self._address = party.address
        self._local = LocalHost(run_dir)
        self.remotes = party.remotes
        self.host = HostGroup((self._local, *self.remotes))
        self.left_behind: tuple[str, ...] = ()
        self.primary = PrimaryProcess(self._local)
        try:
            numbers = plan.hosts.numbers
            self._local.spawn(numbers.get(THIS_HOST, range(0)) if plan.hosts else range(plan.workers))
            for remote in self.remotes:
                remote.spawn(numbers[remote.name])
        except BaseException:
            self.__exit__()
            raise

    def tell_plan(self, plan: WavePlan) -> None:
        """Tell every process what to run; its plan stands in the run directory by now."""
        from inference_benchmarker.engine.locust.zmq_keys import make_keys

        whole_plan = plan.to_json()
        keys, keys_of_workers = make_keys(plan.workers)
        place = {"run_dir": str(self._run_dir.path), "host": self._local.own().to_json(), "also": self._address}
        self.primary.begin({"plan": whole_plan, **place, "keys": keys.to_json()})
        for remote in self.remotes:
            remote.send_recording()
        for number, own in enumerate(keys_of_workers):
            self.host.begin(number, {"plan": whole_plan, "worker": number, "keys": own.to_json()})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.left_behind = self.host.close()
        self.primary.close()
