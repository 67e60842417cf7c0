"""The ends of waves of two hosts to which something happens at one of their stages: as promised, with nothing left.

``python -m tests.performance.hosts ends [NAME ...]`` plays every event at every stage and prints a row for each. It
judges the exit code, what was said, the records against the server's log, and what is left on either host and here.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.bench import Bench
from tests.hosts.host import Spec
from tests.performance.hosts.stage import staged
from tests.performance.stamp_server import StampServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tests.bench import Finished, Running
    from tests.hosts.host import Host

RATE, SECONDS = 50, 4
ANSWER_S = 1.5  # so long is the drain
LOGIN_S = 1.5  # and so long, at least, the joining
PATIENCE_S = 100.0
STAGES = ("joining", "running", "draining", "ending")


@dataclass(frozen=True, slots=True)
class Scene:
    """A wave that runs from ``near`` and ``far``, of which the second has the trouble."""

    running: Running
    far: Host
    stamps: StampServer

    def await_stage(self, stage: str) -> None:
        """Until the wave is so far."""
        if stage == "joining":
            self.running.wait_for(self.running.run_dirs, "the run directory")
            time.sleep(LOGIN_S / 2)
            return
        self.running.wait_for(lambda: len(self.stamps.log()) >= RATE, "requests")
        if stage == "draining":
            self.running.wait_for(lambda: len(self.stamps.log()) == RATE * SECONDS, "the last request")
        if stage == "ending":
            self.running.wait_for(self._all_answered, "the last answer")

    def _all_answered(self) -> bool:
        log = self.stamps.log()
        return len(log) == RATE * SECONDS and bool((log["answered_ns"] > 0).all())

    def cut(self, seconds: float) -> None:
        """Nothing comes through the relay before the host, and no connection is closed."""
        assert self.far.relay is not None
        self.far.relay.cut()
        threading.Timer(seconds, self.far.relay.mend).start()

    def unplug(self, seconds: float) -> None:
        """Take the host's cable out: what is sent is lost, and TCP must send it again."""
        self.far.unplug()
        threading.Timer(seconds, self.far.plug).start()

    def kill(self, word: str) -> None:
        """Kill the process of the host whose arguments have this word; none may be there yet, or any more."""
        for process in self.far.processes():
            program, _, arguments = process.command.partition(" ")
            if program.endswith("python") and word in arguments:
                os.kill(process.pid, signal.SIGKILL)
                return

    def kill_agent(self) -> None:
        """Kill the agent, which a login may still have to start."""
        until = time.monotonic() + 2 * LOGIN_S
        while (
            not any("python -P -m" in process.command for process in self.far.processes()) and time.monotonic() < until
        ):
            time.sleep(0.02)
        self.kill("engine.hosts.agent")

    def kill_logins(self) -> None:
        """Kill every sshd of the host, and start one again."""
        self.far.kill_sshd(sessions=True)
        self.far.start_sshd()

    def interrupt(self, times: int) -> None:
        """Ctrl-C, so many times."""
        for _ in range(times):
            self.running.signal(signal.SIGINT)
            time.sleep(0.05)


ALL_WELL, MISSED, BAD_INPUT, INVALID, INTERRUPTED, KILLED = 0, 1, 2, 3, 130, -signal.SIGKILL
Codes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens, and the exit codes that are right when it happens at each stage, in their order.

    Two codes stand where the instant decides: whether all was reported before.
    """

    name: str
    act: Callable[[Scene], object]
    codes: tuple[Codes, Codes, Codes, Codes]

    @property
    def of_the_cable(self) -> bool:
        """Tells whether requests are lost, too, on the way to the server."""
        return self.name.startswith("cable")


MENDED = ((ALL_WELL,),) * 4
PLUGGED = ((ALL_WELL,), *((ALL_WELL, MISSED),) * 3)  # requests were lost, too
STOPPED = ((INTERRUPTED,), (INTERRUPTED,), (INTERRUPTED,), (ALL_WELL, INTERRUPTED))
LOST = ((BAD_INPUT, ALL_WELL), (INVALID,), (INVALID,), (ALL_WELL, INVALID))
EVENTS = (
    Event("link cut for 3 s", lambda scene: scene.cut(3), MENDED),
    Event("link cut for 8 s", lambda scene: scene.cut(8), MENDED),
    Event("link cut for 11 s", lambda scene: scene.cut(11), LOST),
    Event("link cut for 30 s", lambda scene: scene.cut(30), LOST),
    Event("cable out for 3 s", lambda scene: scene.unplug(3), PLUGGED),
    Event("cable out for 8 s", lambda scene: scene.unplug(8), PLUGGED),
    Event("cable out for 30 s", lambda scene: scene.unplug(30), LOST),
    Event("Ctrl-C", lambda scene: scene.interrupt(1), STOPPED),
    Event("Ctrl-C twice", lambda scene: scene.interrupt(2), STOPPED),
    Event("a worker is killed", lambda scene: scene.kill("engine.worker"), ((ALL_WELL,), *LOST[1:])),
    Event("the agent is killed", lambda scene: scene.kill_agent(), LOST),
    Event("sshd and its logins are killed", lambda scene: scene.kill_logins(), LOST),
    Event("the primary is killed", lambda scene: scene.running.primary().kill(), LOST),
    Event("the command is killed", lambda scene: scene.running.process.kill(), ((KILLED,),) * 4),
)


def play(names: Sequence[str]) -> bool:
    """Play the events with one of these words in their name or stage, all for none; true when each ended well."""
    good = True
    with staged() as (lab, place):
        bench, temporary = Bench(place), place / "temporary"
        temporary.mkdir()
        # The cable's events need a way without the relay, which would hold what is sent, and a quick login.
        relayed = Spec("far", -50, relayed=True, bashrc=f"sleep {LOGIN_S}\n")
        near, far, direct = lab.start(Spec("near", clock_s=500), relayed, Spec("direct", -70))
        print("| event | stage | ended with | after | records / server's log | left | |")
        print("|---|---|---|---|---|---|---|")
        for event, stage, codes in _rows(names):
            host = direct if event.of_the_cable else far
            with StampServer(address=lab.address, delay_ms=1e3 * ANSWER_S) as stamps:
                good &= _row(bench, event, stage, codes, near=near, far=host, stamps=stamps, place=temporary)
        bench.close()
    return good


def _rows(names: Sequence[str]) -> Iterator[tuple[Event, str, Codes]]:
    for event in EVENTS:
        for stage, codes in zip(STAGES, event.codes, strict=True):
            is_wanted = not names or any(name in f"{event.name} {stage}" for name in names)
            if is_wanted and (event.name, stage) != ("the primary is killed", "joining"):  # there is none yet
                yield event, stage, codes


def _row(
    bench: Bench, event: Event, stage: str, codes: Codes, *, near: Host, far: Host, stamps: StampServer, place: Path
) -> bool:
    flags = ("--client-rps", RATE, "--obs-time", SECONDS, "--output-dir", "runs", "--hosts", f"near*1,{far.name}*1")
    running = bench.start(stamps.url, *flags, factories=None, environment={"TMPDIR": str(place)})
    scene = Scene(running, far, stamps)
    scene.await_stage(stage)
    at = time.monotonic()
    event.act(scene)
    ended = running.finish(PATIENCE_S)
    took_s = time.monotonic() - at
    left = [*near.left(40), *far.left(40)]
    log = len(stamps.log())
    records = len(ended.rows) if ended.run_dir and (ended.folder / "requests.parquet").exists() else None
    wrong = list(_wrong(ended, codes, records, log, far.name))
    if records is not None and not event.of_the_cable and (records > log or (ended.code == ALL_WELL and records < log)):
        wrong.append("records that are not the server's")
    if (temporary := [path.name for path in place.iterdir()]) and ended.code != KILLED:
        wrong.append(f"left here: {', '.join(temporary)}")
    counted = f"{'-' if records is None else records} / {log}"
    left_text = ", ".join(left) or "nothing"
    verdict = "as promised" if not wrong and not left else f"WRONG: {'; '.join(wrong)}"
    print(
        f"| {event.name} | {stage} | {ended.code} | {took_s:.1f} s | {counted} | {left_text} | {verdict} |", flush=True
    )
    if wrong:
        print(ended.out[-1500:], ended.err[-1500:], sep="\n", flush=True)
    return verdict == "as promised"


def _wrong(ended: Finished, codes: Codes, records: int | None, log: int, far: str) -> Iterator[str]:
    """What is not as promised."""
    said = ended.out + ended.err
    if ended.code not in codes:
        yield f"exit code {ended.code} instead of {' or '.join(map(str, codes))}"
    if "Traceback" in said:
        yield "a traceback"
    if ended.code in (ALL_WELL, MISSED) and records != RATE * SECONDS:
        yield "a VALID wave without all of its records"
    if ended.code == BAD_INPUT and (log or far not in said):
        yield "bad input, but load was sent, or the host is not named"
    if ended.code == INVALID and records is not None and "INVALID" not in said:
        yield "no verdict"
