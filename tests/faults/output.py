"""Streams that break, terminals that close, and interrupts at every stage."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from tests.bench import factories, ids
from tests.fake_cloudwatch import cloudwatch_block
from tests.faults.fault import EVERYTHING, LONG, SHORT, Ending, Fault, Stage, wave

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.bench import Running

SLOW_START = factories("pass", "time.sleep(60)")
STOPPING = "Stopping"
UNREAD = {"unread": True}


def ctrl_c(running: Running) -> None:
    """One Ctrl-C."""
    running.signal(signal.SIGINT)


def hang_up(running: Running) -> None:
    """The terminal's end."""
    running.signal(signal.SIGHUP)


def ctrl_c_times(times: int) -> Callable[[Running], None]:
    """The second when the first was heard, the others at once."""

    def act(running: Running) -> None:
        ctrl_c(running)
        running.wait_for(lambda: STOPPING in running.err, "the first Ctrl-C was heard")
        time.sleep(0.3)
        assert running.process.poll() is None, "the first one waits for requests in flight"
        for _ in range(times - 1):
            with suppress(ProcessLookupError):
                ctrl_c(running)
            time.sleep(0.02)

    return act


def interrupted_in_the_drain(running: Running) -> None:
    """Ctrl-C, and the terminal's end while the command waits for requests in flight."""
    ctrl_c(running)
    running.wait_for(lambda: STOPPING in running.err, "the drain")
    hang_up(running)


def before_the_wave(
    act: Callable[[Running], object], *flags: object, text: str = SLOW_START
) -> Callable[[Stage], Ending]:
    """Something happens while workers load the endpoint."""

    def play(stage: Stage) -> Ending:
        running = stage.start(*(flags or SHORT), text=text)
        running.wait_for(lambda: len(running.workers()) == 2, "workers")
        act(running)
        return Ending(running.finish(30), None, stored=False)

    return play


def with_tee_that_ctrl_c_ends(stage: Stage) -> Ending:
    """``2>&1 | tee log`` and one Ctrl-C, which the terminal gives both."""
    with stage.server() as asked, (stage.folder / "log").open("wb") as log:
        reader, writer = os.pipe()
        tee = subprocess.Popen(["tee", "-a", "copy"], cwd=stage.folder, stdin=reader, stdout=log)
        os.close(reader)
        running = stage.start(*LONG, target=asked.url, streams={"stdout": writer, "stderr": writer})
        asked.wait_for(40, running)
        tee.send_signal(signal.SIGINT)
        tee.wait()
        ctrl_c(running)
        return Ending(running.finish(), asked.arrived(), unread=True)


def with_terminal_closed(stage: Stage) -> Ending:
    """A terminal of the command's own, whose other end goes away."""
    master, slave = pty.openpty()
    with stage.server() as asked:
        streams = {"stdin": slave, "stdout": slave, "stderr": slave}
        running = stage.start(*LONG, target=asked.url, streams=streams, session=("setsid", "--ctty"))
        asked.wait_for(60, running)
        os.close(master)
        return Ending(running.finish(), asked.arrived(), unread=True)


def with_a_reader_that_leaves(stage: Stage) -> Ending:
    """``| head -1``."""
    with stage.server() as asked:
        reader, writer = os.pipe()
        head = subprocess.Popen(["head", "-1"], stdin=reader, stdout=subprocess.DEVNULL)
        os.close(reader)
        running = stage.start(*SHORT, target=asked.url, streams={"stdout": writer})
        ending = Ending(running.finish(), asked.arrived(), unread=True)
    head.wait()
    return ending


def with_a_reader_that_stands_still(stage: Stage) -> Ending:
    """Standard error is a pipe that is full; two Ctrl-C."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writer, b"." * 512)
    os.set_blocking(writer, True)
    with stage.bench.endpoint(service="none", hang_share=1.0) as endpoint:
        running = stage.start(*LONG, target=endpoint, streams={"stderr": writer})
        running.wait_for_arrivals(endpoint, 20)
        for _ in range(2):
            ctrl_c(running)
            time.sleep(0.5)
        finished = running.finish(30)
        os.close(reader)
        return Ending(finished, ids(endpoint.arrivals()))


def while_metrics_are_waited_for(act: Callable[[Running], object]) -> Callable[[Stage], Ending]:
    """Something happens while CloudWatch has nothing yet."""

    def play(stage: Stage) -> Ending:
        block = cloudwatch_block("AWS/SageMaker", {"Invocations": ["Sum"]}, period=5)
        (stage.folder / "metrics.json").write_text(json.dumps([block]))
        with stage.bench.endpoint(publish_interval_s=1, publication_delay_s=3600) as endpoint:
            flags = (*SHORT, "--endpoint-config", "metrics.json")
            running = stage.start(*flags, target=endpoint, environment=endpoint.aws_environment)
            running.wait_for(lambda: "⏳" in running.err, "the metrics are waited for")
            act(running)
            finished = running.finish(40)
            arrived = ids(endpoint.arrivals())
        return Ending(finished, arrived)

    return play


def three_times(running: Running) -> None:
    """Three Ctrl-C in a row."""
    for _ in range(3):
        with suppress(ProcessLookupError):
            ctrl_c(running)
        time.sleep(0.1)


OUTPUT = (
    Fault(
        "tee-ends",
        "<code>2>&1 &#124; tee log</code>, and one Ctrl-C, which ends `tee` as well",
        "the wave up to the Ctrl-C",
        "the printed report; `benchmark report` has it",
        130,
        with_tee_that_ctrl_c_ends,
        slow=True,
    ),
    Fault(
        "terminal-closed",
        "the terminal is closed in the middle of the wave",
        "the wave up to then",
        "the printed report",
        130,
        with_terminal_closed,
        slow=True,
    ),
    Fault(
        "hang-up-loading",
        "the terminal is closed while the endpoint is loaded",
        "nothing had begun",
        "nothing",
        130,
        before_the_wave(hang_up),
    ),
    Fault(
        "hang-up-draining",
        "Ctrl-C, then the terminal is closed while the command waits for requests in flight",
        "the wave up to then; requests in flight are abandoned",
        "nothing",
        130,
        wave(*LONG, act=interrupted_in_the_drain, arrivals=20, server={"service": "none", "hang_share": 1.0}),
        slow=True,
    ),
    Fault(
        "hang-up-metrics",
        "the terminal is closed while the command waits for the server's metrics",
        "the wave",
        "metrics that had not arrived; `benchmark report` requests them again",
        0,
        while_metrics_are_waited_for(hang_up),
        slow=True,
    ),
    Fault(
        "ctrl-c-metrics",
        "three Ctrl-C while the command waits for the server's metrics",
        "the wave",
        "metrics that had not arrived; `benchmark report` requests them again",
        0,
        while_metrics_are_waited_for(three_times),
        slow=True,
    ),
    Fault("stderr-full", "`2>/dev/full`", EVERYTHING, "progress lines", 0, wave(before="exec 2>/dev/full"), slow=True),
    Fault(
        "stdout-full",
        "`>/dev/full`",
        EVERYTHING,
        "the printed report, and a message says so",
        3,
        wave(before="exec >/dev/full", like={**UNREAD, "apart": True}),
        slow=True,
    ),
    Fault(
        "stderr-closed",
        "`2>&-`",
        EVERYTHING,
        "progress lines",
        0,
        wave(before="exec 2>&-"),
        slow=True,
    ),
    Fault(
        "stdout-closed",
        "`>&-`",
        EVERYTHING,
        "the printed report",
        0,
        wave(before="exec >&-", like=UNREAD),
        slow=True,
    ),
    Fault(
        "all-closed",
        "`<&- >&- 2>&-`",
        EVERYTHING,
        "all that is printed",
        0,
        wave(before="exec <&- >&- 2>&-", like=UNREAD),
        slow=True,
    ),
    Fault(
        "json-full",
        "`--json >/dev/full`",
        EVERYTHING,
        "the printed report, and a message says so",
        3,
        wave(*SHORT, "--json", before="exec >/dev/full", like={**UNREAD, "apart": True}),
        slow=True,
    ),
    Fault(
        "json-stderr-full",
        "`--json 2>/dev/full`",
        EVERYTHING,
        "progress lines",
        0,
        wave(*SHORT, "--json", before="exec 2>/dev/full"),
        slow=True,
    ),
    Fault(
        "quiet-stderr-closed",
        "`--quiet 2>&-`, and one Ctrl-C",
        "the wave up to the Ctrl-C",
        "nothing",
        130,
        wave(*LONG, "--quiet", before="exec 2>&-", act=ctrl_c, arrivals=20),
        slow=True,
    ),
    Fault(
        "head-1",
        "<code>&#124; head -1</code>: the reader of the report leaves",
        EVERYTHING,
        "what it did not read",
        0,
        with_a_reader_that_leaves,
        slow=True,
    ),
    Fault(
        "stderr-stands-still",
        "the reader of standard error stops reading (a full pipe), and two Ctrl-C",
        "the wave up to then; requests in flight are abandoned",
        "progress lines",
        130,
        with_a_reader_that_stands_still,
    ),
    Fault(
        "ctrl-c-loading",
        "Ctrl-C while the endpoint is loaded",
        "nothing had begun",
        "nothing",
        130,
        before_the_wave(ctrl_c),
        slow=True,
    ),
    Fault(
        "sigterm",
        "SIGTERM in the middle of the wave",
        "the wave up to then, with the answers of requests in flight",
        "nothing",
        130,
        wave(*LONG, act=lambda running: running.signal(signal.SIGTERM), arrivals=30),
        slow=True,
    ),
    Fault(
        "ten-ctrl-c",
        "Ctrl-C ten times",
        "the wave up to the second; requests in flight are abandoned",
        "what was due and not sent at the second",
        130,
        wave(*LONG, act=ctrl_c_times(10), arrivals=20, server={"service": "none", "hang_share": 1.0}),
    ),
)
