"""Processes that stop, die, hang or leave others behind."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any

import psutil

from tests.bench import FACTORIES, factories
from tests.faults.fault import (
    EVERYTHING,
    LEAVING_S,
    LONG,
    SECRET_NAME,
    SHORT,
    TELLING,
    THREE_S,
    Ending,
    Fault,
    Stage,
    nothing,
    wave,
)
from tests.faults.output import SLOW_START, ctrl_c, ctrl_c_times

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.bench import Running

HANGING = {"service": "none", "hang_share": 1.0}
REPORTED = "what was reported: all but the last second or so"
STRIPE = "the worker's part of the wave, from its last report on"


def to_primary(number: signal.Signals, then: Callable[[Running], object] = nothing) -> Callable[[Running], None]:
    """A signal to the primary, and then something else."""

    def act(running: Running) -> None:
        running.primary().send_signal(number)
        then(running)

    return act


def to_worker(number: signal.Signals) -> Callable[[Running], None]:
    """A signal to the second worker."""
    return lambda running: running.workers()[1].send_signal(number)


def primary_dies_in_the_drain(running: Running) -> None:
    """Killed when the first Ctrl-C was heard and requests are in flight."""
    primary = running.primary()
    ctrl_c(running)
    running.wait_for(lambda: "Stopping" in running.err, "the drain")
    primary.kill()


def read_afterwards(kill: Callable[[Running], object], text: str = FACTORIES) -> Callable[[Stage], Ending]:
    """The command is killed, and ``benchmark report`` reads what it left."""

    def play(stage: Stage) -> Ending:
        with stage.server() as asked:
            running = stage.start(*LONG, target=asked.url, text=text)
            asked.wait_for(110, running)
            (run_dir,) = running.run_dirs()
            kill(running)
            running.finish(20)
        return Ending(stage.start("report", run_dir.relative_to(stage.folder), text=None).finish(), asked.arrived())

    return play


def killed_while_reading(stage: Stage) -> Ending:
    """The command is killed while it reads a recording; the next one has the same output folder."""
    for name, rows in (("large.csv", 2_000_000), ("small.csv", 40)):
        times = (f"{1_700_000_000 + number / 40:.3f}" for number in range(rows))
        (stage.folder / name).write_text("\n".join(["timestamp", *times, ""]))
    runs = stage.folder / "runs"
    with stage.server() as asked:
        running = stage.start("--replay", "large.csv", target=asked.url)
        left = running.wait_for(lambda: next(runs.glob(".replay_*/*"), None), "a recording that is read")
        running.process.kill()
        assert running.finish(20).code == -signal.SIGKILL
        assert not asked.arrived()
        os.utime(left.parent, (0, 0))  # younger ones may be another command's
        finished = stage.start("--replay", "small.csv", target=asked.url).finish()
        assert not list(runs.glob(".replay_*"))
        return Ending(finished, asked.arrived())


def sends_on(stage: Stage) -> Ending:
    """What ``invoke`` forked and started goes on sending; of the log, the wave's own part."""
    before = """
import subprocess, sys

SENDER = '''
import http.client, os, time
while True:
    connection = http.client.HTTPConnection(os.environ["TARGET"].removeprefix("http://"))
    connection.request("POST", "/invocations", b"{}", {"X-Request-Id": "stray"})
    connection.getresponse().read()
    time.sleep(0.05)
'''
"""
    invoke = """
if payload == 3:
    subprocess.Popen([sys.executable, "-c", SENDER], start_new_session=True)
if payload == 5 and os.fork() == 0:
    exec(SENDER)
"""
    with stage.bench.endpoint(service="none") as endpoint:
        running = stage.start(*THREE_S, target=endpoint, text=factories(invoke, before))
        finished = running.finish()
        seen = endpoint.arrivals()["id"]
        time.sleep(0.3)
        assert len(endpoint.arrivals()["id"]) == len(seen), "nobody sends any more"
    assert "stray" in seen
    return Ending(finished, [int(name) for name in seen if name != "stray"])


DAEMON = """
import subprocess, sys

SENDER = '''
import http.client, os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
while True:
    connection = http.client.HTTPConnection(sys.argv[1])
    connection.request("POST", "/invocations", b"{}", {"X-Request-Id": "stray"})
    connection.getresponse().read()
    time.sleep(0.05)
'''


def leave():
    address = os.environ["TARGET"].removeprefix("http://")
    subprocess.Popen([sys.executable, "-c", SENDER, address], env={}, start_new_session=True)
"""


def daemon(stage: Stage) -> Ending:
    """``invoke`` leaves a process without its parent, session and environment; of the log, the wave's own part."""
    with stage.bench.endpoint(service="none") as endpoint:
        running = stage.start(*THREE_S, target=endpoint, text=factories("if payload == 3:\n    leave()", DAEMON))
        finished = running.finish()
        seen = endpoint.arrivals()["id"]
        time.sleep(0.3)
        assert len(endpoint.arrivals()["id"]) == len(seen), "nobody sends any more"
    assert "stray" in seen
    (found,) = [each for each in finished.summary["findings"] if each["code"] == "processes_left"]
    assert "python" in found["measured"]
    return Ending(finished, [int(name) for name in seen if name != "stray"])


SITTING = """
import subprocess, sys

SITTER = '''
import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
with open("sitting.part", "w") as file:
    file.write(str(os.getpid()))
os.rename("sitting.part", "sitting")
time.sleep(600)
'''


def leave():
    subprocess.Popen([sys.executable, "-c", SITTER], env={}, start_new_session=True)
"""


def killed_and_left(running: Running) -> None:
    """SIGKILL once a process has left its parent, its session and its environment; that ends with the command."""
    left = running.folder / "sitting"
    running.wait_for(left.is_file, "a process that was left")
    process = psutil.Process(int(left.read_text()))
    running.signal(signal.SIGKILL)
    process.wait(LEAVING_S)


def checked(text: str, act: Callable[[Running], object] = nothing) -> Callable[[Stage], Ending]:
    """``benchmark check`` of a file."""

    def play(stage: Stage) -> Ending:
        (stage.folder / "checked.py").write_text(f"import os\n{TELLING}\n{text}")
        running = stage.start("check", "--factories-file", "checked.py", text=None)
        act(running)
        return Ending(running.finish(), None, stored=False)

    return play


def killed_in_its_temporary_folder(running: Running) -> None:
    """SIGKILL once there is something in the temporary folder, and processes that use it."""
    temporary = running.folder / "tmp"
    running.wait_for(lambda: any(temporary.rglob("*.log")) or any(temporary.rglob("output")), "a log")
    time.sleep(0.5)
    running.signal(signal.SIGKILL)


def calibrating(stage: Stage) -> Ending:
    """``--calibrate``, killed in its first wave."""
    running = stage.start(*SHORT, "--calibrate")
    killed_in_its_temporary_folder(running)
    return Ending(running.finish(20), None, stored=False)


def loading(text: str, *flags: str, logs: bool = False) -> Callable[[Stage], Ending]:
    """A factories file that cannot be loaded."""

    def play(stage: Stage) -> Ending:
        return Ending(stage.start(*SHORT, *flags, text=text).finish(), None, stored=False, logs=logs)

    return play


def primary_dies_before(stage: Stage) -> Ending:
    """SIGKILL while workers load."""
    running = stage.start(*SHORT, text=SLOW_START)
    running.wait_for(lambda: len(running.workers()) == 2, "workers")
    running.primary().kill()
    return Ending(running.finish(30), None, stored=False, logs=True, broken=True)


def of_user(
    *lines: str, before: str = "", flags: tuple[str, ...] = THREE_S, **options: Any
) -> Callable[[Stage], Ending]:
    """A wave whose ``invoke`` does this at request 21, in the second worker."""
    return wave(*flags, text=factories("\n    ".join(("if payload == 21:", *lines)), before), **options)


RAISES = f"""
def invoke_factory():
    raise RuntimeError("denied: " + os.environ["{SECRET_NAME}"])

def payload_factory():
    return {{"pre_computed": True, "input": [1]}}
"""
DYING = factories("pass", "print('what it said last', flush=True)\nos.abort()")
LOOPING = factories("pass", "while True:\n    pass")

PROCESSES = (
    Fault(
        "killed-while-reading",
        "the command is killed while it reads a recording, and another one with the same output folder follows",
        "the wave of the other one, which removes what was left of the recording",
        "the wave, of which nothing was sent",
        0,
        killed_while_reading,
        slow=True,
    ),
    Fault(
        "primary-stopped",
        "the primary is stopped (SIGSTOP) in the middle of the wave",
        "what was reported until then; after 30 s of silence it is ended",
        "all from then on",
        3,
        wave(*LONG, act=to_primary(signal.SIGSTOP), arrivals=120),
        slow=True,
        says="The primary does not answer; ending it.",
    ),
    Fault(
        "primary-stopped-ctrl-c",
        "the primary is stopped (SIGSTOP) in the middle of the wave, and two Ctrl-C",
        "what was reported until then",
        "all from then on",
        130,
        wave(*LONG, act=to_primary(signal.SIGSTOP, ctrl_c_times(3)), arrivals=120),
        says="The primary does not answer; ending it.",
    ),
    Fault(
        "primary-killed-before",
        "the primary is killed while the endpoint is loaded",
        "nothing had begun; the message names the primary's log",
        "nothing",
        3,
        primary_dies_before,
        says="the primary process ended before the wave began",
    ),
    Fault(
        "primary-killed",
        "the primary is killed in the middle of the wave",
        REPORTED,
        "the rest of the wave",
        3,
        wave(*LONG, act=to_primary(signal.SIGKILL), arrivals=120),
        slow=True,
    ),
    Fault(
        "primary-killed-in-the-drain",
        "the primary is killed while the command waits for requests in flight",
        REPORTED,
        "what was in flight",
        130,
        wave(*LONG, act=primary_dies_in_the_drain, arrivals=60, server=HANGING),
        slow=True,
    ),
    Fault(
        "worker-stopped",
        "a worker is stopped (SIGSTOP) in the middle of the wave",
        "the other workers' parts, and its own until then; it is ended ten seconds after the drain",
        STRIPE,
        3,
        wave(*THREE_S, "--drain-timeout", "0.1", act=to_worker(signal.SIGSTOP), arrivals=40),
        slow=True,
        says="does not answer; ending it.",
    ),
    Fault(
        "worker-killed",
        "a worker is killed in the middle of the wave",
        "the other workers' parts, and its own until then",
        STRIPE,
        3,
        wave(*THREE_S, act=to_worker(signal.SIGKILL), arrivals=60),
        slow=True,
    ),
    Fault(
        "worker-segfault",
        "`invoke` ends its worker by a segmentation fault",
        "the other workers' parts, and its own until then",
        STRIPE,
        3,
        of_user("import ctypes", "ctypes.string_at(0)"),
        slow=True,
    ),
    Fault(
        "worker-exit",
        "`invoke` calls `os._exit`",
        "the other workers' parts, and its own until then",
        STRIPE,
        3,
        of_user("os._exit(0)"),
        slow=True,
    ),
    Fault(
        "worker-abort",
        "`invoke` calls `os.abort`",
        "the other workers' parts, and its own until then",
        STRIPE,
        3,
        of_user("os.abort()"),
        slow=True,
    ),
    Fault(
        "worker-kills-its-group",
        "`invoke` kills its process group",
        "the other workers' parts, and its own until then: each worker has a group of its own",
        STRIPE,
        3,
        of_user("os.killpg(0, 9)"),
        slow=True,
    ),
    Fault(
        "worker-kills-the-command",
        "`invoke` kills the command itself",
        f"{REPORTED}; `benchmark report` reads it",
        "the last second or so, the rest of the wave, and the printed report",
        3,
        read_afterwards(nothing, text=factories("if payload == 121:\n    os.kill(os.getppid(), 9)")),
        slow=True,
    ),
    Fault(
        "out-of-memory",
        "`invoke` asks for more memory than there is (`MemoryError`)",
        EVERYTHING,
        "that request, which has failed",
        0,
        of_user(
            "import resource",
            "resource.setrlimit(resource.RLIMIT_AS, (4 << 30, resource.RLIM_INFINITY))",
            "bytearray(8 << 30)",
            like={"unsent": True},
        ),
        slow=True,
    ),
    Fault(
        "memory-runs-out",
        "the user's code takes all the memory that the worker may have, and keeps it",
        EVERYTHING,
        "the requests that failed because of it",
        0,
        of_user(
            "import resource",
            "size = int(open('/proc/self/statm').read().split()[0]) * 4096",
            "resource.setrlimit(resource.RLIMIT_AS, (size + (8 << 20), resource.RLIM_INFINITY))",
            "while True:",
            "    kept.append(bytearray(1 << 20))",
            before="kept = []",
            like={"unsent": True},
        ),
        slow=True,
    ),
    Fault(
        "sys-exit",
        "`invoke` calls `sys.exit`",
        EVERYTHING,
        "that request, which has failed",
        0,
        of_user("raise SystemExit(0)", like={"unsent": True}),
        slow=True,
    ),
    Fault(
        "exec",
        "`invoke` replaces its worker with another program (`exec`)",
        "the other workers' parts, and its own until then; the program is ended",
        STRIPE,
        3,
        of_user("os.execv('/bin/sleep', ['sleep', '1000'])", flags=(*THREE_S, "--drain-timeout", "0.1")),
        slow=True,
    ),
    Fault(
        "sends-on",
        "processes that `invoke` forked and started continue to send",
        "everything; they are ended with the wave, and named",
        "nothing",
        0,
        sends_on,
        slow=True,
    ),
    Fault(
        "daemon",
        "`invoke` leaves a process without parent, session and environment (a double fork), which continues to send",
        "everything; it is ended with the wave, and named",
        "nothing",
        0,
        daemon,
        slow=True,
    ),
    Fault(
        "all-killed",
        "every process of the wave is killed at once",
        f"{REPORTED}; `benchmark report` reads it",
        "the last second or so, the rest of the wave, and the printed report",
        3,
        read_afterwards(lambda running: running.kill_all()),
        slow=True,
    ),
    Fault(
        "command-killed",
        "the command is killed; its processes end with it",
        f"{REPORTED}; `benchmark report` reads it",
        "the last second or so, the rest of the wave, and the printed report",
        3,
        read_afterwards(lambda running: running.signal(signal.SIGKILL)),
        slow=True,
    ),
    Fault(
        "command-killed-daemon",
        "the command is killed, and `invoke` had left a process without parent, session and environment",
        f"{REPORTED}; `benchmark report` reads it; that process is ended",
        "the last second or so, the rest of the wave, and the printed report",
        3,
        read_afterwards(killed_and_left, text=factories("if payload == 3:\n    leave()", SITTING)),
        slow=True,
    ),
    Fault(
        "killed-calibrating",
        "the command is killed in a calibration",
        "nothing had begun; the calibration's files are removed",
        "nothing",
        -9,
        calibrating,
        slow=True,
    ),
    Fault(
        "killed-checking",
        "`benchmark check` is killed",
        "nothing; its files are removed",
        "nothing",
        -9,
        checked(SLOW_START.replace("from sender import post", ""), killed_in_its_temporary_folder),
        slow=True,
    ),
    Fault(
        "killed-checking-daemon",
        "`benchmark check` is killed, and the file had left a process without parent, session and environment",
        "nothing; its files are removed, and that process is ended",
        "nothing",
        -9,
        checked(f"{SITTING}\nleave()\n{SLOW_START.replace('from sender import post', '')}", killed_and_left),
        slow=True,
    ),
    Fault(
        "loading-computes-for-ever",
        "the factories file computes forever while it is loaded (`--load-timeout 8`)",
        "nothing had begun; the message names the line that it has reached",
        "nothing",
        2,
        loading(LOOPING, "--load-timeout", "8"),
        slow=True,
        says="has not loaded it within 8 s; it is at line",
    ),
    Fault(
        "loading-waits-for-ever",
        "the factories file waits forever while it is loaded (`--load-timeout 8`)",
        "nothing had begun; the message names the line that it has reached",
        "nothing",
        2,
        loading(SLOW_START, "--load-timeout", "8"),
        says="has not loaded it within 8 s; it is at line",
        slow=True,
    ),
    Fault(
        "dies-loading",
        "a worker dies while it loads the endpoint",
        "nothing had begun; its last output is reported and its log is kept",
        "nothing",
        2,
        loading(DYING, logs=True),
        says="what it said last",
    ),
    Fault(
        "factory-raises",
        "`invoke_factory` raises with a key in its text",
        "nothing had begun; the text is reported without the key",
        "nothing",
        2,
        loading(f"from sender import post\n{RAISES}"),
        slow=True,
        says="denied: [hidden]",
    ),
    Fault(
        "factory-raises-checking",
        "`invoke_factory` raises in `benchmark check` with a key in its text",
        "the text is reported without the key",
        "nothing",
        2,
        checked(RAISES),
        slow=True,
        says="denied: [hidden]",
    ),
)
