"""Factories files that do what no one should."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench import factories
from tests.faults.environment import namespace
from tests.faults.fault import EVERYTHING, SHORT, Ending, Fault, Stage, wave

if TYPE_CHECKING:
    from collections.abc import Callable

NOTHING = "nothing"
FAILED = "those requests, which have failed"


def invoke(
    *lines: str, before: str = "", flags: tuple[object, ...] = SHORT, **options: Any
) -> Callable[[Stage], Ending]:
    """A wave whose ``invoke`` begins like this."""
    return wave(*flags, text=factories("\n".join(lines), before), **options)


def fails(*lines: str, before: str = "") -> Callable[[Stage], Ending]:
    """Every tenth request of a wave does this instead of being sent."""
    indented = "\n    ".join(("if payload % 10 == 1:", *lines))
    return invoke(*indented.split("\n"), before=before, like={"unsent": True})


def answers(expression: str, before: str = "") -> Callable[[Stage], Ending]:
    """A wave whose ``invoke`` sends, and then returns this."""
    return invoke(
        "post(payload)", f"return {expression}", before=f"from inference_benchmarker import Response\n{before}"
    )


def sessions(*lines: str, parameters: str = "number") -> str:
    """A factories file whose sessions begin with one request, and then do this."""
    then = "\n        ".join(lines)
    return f"""
from inference_benchmarker import Turn
from sender import post

def invoke_factory():
    return post

def session_factory():
    def session({parameters}):
        yield Turn(number)
        {then}

    return session
"""


def cut_off_conversations(stage: Stage) -> Ending:
    """A file of conversations, the last of which is cut off within a text, and one of which is none."""
    lines = ['{"messages": [{"role": "user", "content": "q"}]}'] * 5
    (stage.folder / "talks.jsonl").write_text("\n".join([*lines[:3], '{"messages": 7}', *lines[3:], lines[0][:20]]))
    flags = (*SHORT, "--conversations", "talks.jsonl")
    text = sessions('assert recorded["turns"]', parameters="number, recorded")
    return wave(*flags, text=text)(stage)


def labelled(expression: str) -> Callable[[Stage], Ending]:
    """A wave whose payloads have this label."""
    text = factories("pass").replace('"pre_computed": True,', f'"pre_computed": True, "label": lambda p: {expression},')
    return wave(text=text)


SMALL = 600 << 20
GROWS = f"""
KEPT = []


def grow():
    KEPT.append(b"x" * (6 << 20))
    with open("/proc/self/statm") as statm:
        mine = int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    with open("meminfo", "r+") as told:
        text = re.sub(r"(?m)^MemAvailable: .*$", f"MemAvailable: {{max({SMALL} - mine, 0) // 1024:16}} kB", told.read())
        told.seek(0)
        told.write(text)
"""


def takes_all_memory(stage: Stage) -> Ending:
    """A worker takes what memory there is: of a machine with little, as its /proc/meminfo tells."""
    reported = re.sub(
        r"(?m)^MemAvailable: .*$", f"MemAvailable: {SMALL // 1024:16} kB", Path("/proc/meminfo").read_text()
    )
    (stage.folder / "meminfo").write_text(reported)
    session = (*namespace("--mount"), "sh", "-c", 'mount --bind meminfo /proc/meminfo && exec "$@"', "sh")
    flags = ("--client-rps", "40", "--obs-time", "60", "--workers", "1")
    with stage.server() as asked:
        text = factories("if payload > 40:\n    grow()", GROWS)
        finished = stage.start(*flags, text=text, target=asked.url, session=session).finish(60)
        assert "worker_memory" in {each["code"] for each in finished.summary["findings"]}, finished.out
        return Ending(finished, asked.arrived(), apart=True)


USER_CODE = (
    Fault(
        "takes-all-memory",
        "`invoke` keeps more with each request, until the memory of the machine is nearly used up",
        "all that was sent: the wave ends, with its requests in flight, before the kernel kills the worker",
        "the rest of the wave",
        3,
        takes_all_memory,
        slow=True,
    ),
    Fault(
        "blocks-the-loop",
        "`invoke` blocks its worker's event loop for 0.3 s, three times in a second",
        "everything, sent late; the wave is INVALID, and the report names what blocked",
        NOTHING,
        3,
        invoke(
            "if payload in (5, 17, 29):",
            "    gevent.monkey.get_original('time', 'sleep')(0.3)",
            before="import gevent.monkey",
            like={"apart": True},
        ),
        slow=True,
    ),
    Fault(
        "raises-base-exceptions",
        "`invoke` raises SystemExit, KeyboardInterrupt, GeneratorExit, and ends its own greenlet",
        EVERYTHING,
        FAILED,
        1,
        invoke(
            "if payload % 8 < 3:",
            "    raise (SystemExit, KeyboardInterrupt, GeneratorExit)[payload % 8]",
            "if payload % 8 == 3:",
            "    gevent.getcurrent().kill()",
            like={"unsent": True},
        ),
        slow=True,
    ),
    Fault(
        "error-without-text",
        "`invoke` raises an exception whose `__str__` raises SystemExit",
        EVERYTHING,
        FAILED,
        1,
        fails(
            "raise Odd",
            before="class Odd(Exception):\n    def __str__(self):\n        raise SystemExit(1)\n    __repr__ = __str__",
        ),
        slow=True,
    ),
    Fault(
        "error-with-a-key",
        "`invoke` raises with keys in the error's text and code",
        "everything; the keys are hidden",
        FAILED,
        1,
        fails(
            "raise Denied",
            before="class Denied(Exception):\n"
            "    response = {'Error': {'Code': secret}}\n"
            "    status = quote(secret)\n"
            "    def __str__(self):\n"
            "        return secret + quote_plus(secret) + base64.b64encode(secret.encode()).decode()",
        ),
    ),
    Fault(
        "deep-recursion",
        "`invoke` calls itself endlessly",
        EVERYTHING,
        FAILED,
        1,
        fails("deeper()", before="def deeper():\n    deeper()"),
        slow=True,
    ),
    Fault(
        "negative-usage",
        "`invoke` returns a negative token count",
        EVERYTHING,
        FAILED,
        1,
        answers("Response(tokens_in=-5, tokens_out=1)"),
        slow=True,
    ),
    Fault(
        "huge-usage",
        "`invoke` returns absurdly large token counts",
        EVERYTHING,
        FAILED,
        1,
        answers("Response(tokens_in=2**80, tokens_out=2**62, bytes=2**63)"),
        slow=True,
    ),
    Fault(
        "odd-model",
        "`invoke` returns a model name whose `__str__` raises",
        EVERYTHING,
        FAILED,
        1,
        answers("Response(model=Odd())", "class Odd:\n    def __str__(self):\n        raise SystemExit(1)"),
        slow=True,
    ),
    Fault(
        "one-long-line",
        "`invoke` prints 600 kB in one line, with a key in it",
        EVERYTHING,
        "all of the line but its beginning",
        0,
        invoke("if payload == 11:", "    print('a.' * 150_000 + secret + 'b.' * 150_000)"),
        slow=True,
    ),
    Fault(
        "prints-base64-lines",
        "the user's code prints a key in base64, a line at a time",
        "everything; the key stays hidden",
        NOTHING,
        0,
        invoke(
            "if payload == 11:",
            "    for line in base64.encodebytes(b'x' * 50 + secret.encode()).split(b'\\n'):",
            "        print(line.decode(), flush=True)",
            "        time.sleep(0.02)",
            before="import time",
        ),
        slow=True,
    ),
    Fault(
        "prints-50-mb",
        "the user's code prints 50 MB",
        EVERYTHING,
        "the part of a log between its first 16 MiB and its last 256 KiB",
        0,
        invoke(before="for _ in range(1000):\n    print('a.' * 25_000)"),
        slow=True,
    ),
    Fault(
        "prints-escapes",
        "the user's code prints escapes and a verdict of its own",
        "everything; the escapes are shown as text",
        NOTHING,
        0,
        invoke("print('\\x1b[2J\\x1b]0;title\\x07\\nVALID\\r\\u202e')"),
        slow=True,
    ),
    Fault(
        "closes-its-streams",
        "the user's code closes standard output and standard error",
        EVERYTHING,
        "what it prints from then on",
        0,
        invoke("if payload == 11:", "    os.close(1)", "    os.close(2)"),
        slow=True,
    ),
    Fault(
        "no-streams",
        "the user's code sets `sys.stdout` and `sys.stderr` to None",
        EVERYTHING,
        "what it prints from then on",
        0,
        invoke(before="sys.stdout = sys.stderr = None"),
        slow=True,
    ),
    Fault(
        "closes-everything",
        "`invoke` closes every file of its worker, its connections included",
        "the other workers' parts, and its own until then",
        "the worker's part of the wave, from its last report on",
        3,
        invoke("if payload == 11:", "    os.closerange(0, 4096)", flags=(*SHORT, "--drain-timeout", "0.1")),
        slow=True,
    ),
    Fault(
        "changes-directory",
        "the user's code changes the current directory",
        EVERYTHING,
        NOTHING,
        0,
        invoke("os.chdir('/')", before="os.chdir('/tmp')"),
        slow=True,
    ),
    Fault(
        "removes-itself",
        "the factories file removes itself while it is loaded",
        "everything, or a message where another worker comes too late to read it",
        NOTHING,
        0,
        invoke(before="os.unlink(__file__)", flags=("--client-rps", "40", "--obs-time", "1")),
        slow=True,
    ),
    Fault(
        "changes-clocks",
        "the user's code replaces the functions of the clock",
        EVERYTHING,
        NOTHING,
        0,
        invoke(
            before="time.time = time.monotonic = time.perf_counter = lambda: 0.0\n"
            "time.time_ns = time.monotonic_ns = time.perf_counter_ns = lambda: 0"
        ),
        slow=True,
    ),
    Fault(
        "endless-threads",
        "the user's code starts threads that never end",
        EVERYTHING,
        NOTHING,
        0,
        invoke(
            "if payload < 6:",
            "    threading.Thread(target=forever).start()",
            before="import threading\nfrom gevent.monkey import get_original\n"
            "start = get_original('_thread', 'start_new_thread')\n"
            "def forever():\n    while True:\n        time.sleep(0.05)\n"
            "start(get_original('time', 'sleep'), (3600,))",
        ),
        slow=True,
    ),
    Fault(
        "signal-handlers",
        "the user's code ignores every signal",
        EVERYTHING,
        NOTHING,
        0,
        invoke(
            before="import signal\n"
            "for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:\n"
            "    signal.signal(number, signal.SIG_IGN)"
        ),
        slow=True,
    ),
    Fault(
        "no-environment",
        "the user's code empties `os.environ`",
        "everything; secrets stay hidden",
        NOTHING,
        0,
        invoke("if payload == 11:", "    print(secret)", before="os.environ.clear()"),
        slow=True,
    ),
    Fault(
        "no-json",
        "the user's code replaces functions of the module `json`",
        EVERYTHING,
        NOTHING,
        0,
        invoke(before="import json\njson.dumps = json.loads = None"),
        slow=True,
    ),
    Fault(
        "garbage-collections",
        "`invoke` leaves reference cycles and collects garbage each time",
        EVERYTHING,
        NOTHING,
        0,
        invoke("circle = [object() for _ in range(100)]", "circle.append(circle)", "gc.collect()", before="import gc"),
        slow=True,
    ),
    Fault(
        "long-label",
        "a payload's label is 1 MB long",
        EVERYTHING,
        "all of the label but its beginning",
        0,
        labelled("secret + 'l' * 1_000_000"),
        slow=True,
    ),
    Fault(
        "label-raises",
        "`label` raises",
        EVERYTHING,
        "every request: each has failed before it was sent, and the wave is INVALID",
        3,
        wave(
            text=factories("pass").replace('"pre_computed": True,', '"pre_computed": True, "label": lambda p: 1 / 0,'),
            like={"unsent": True},
        ),
        slow=True,
    ),
    Fault(
        "opens-files",
        "`invoke` opens files and closes none (`ulimit -n 64`)",
        "everything; requests that find no descriptor are dropped or fail, and a finding says so",
        "those requests",
        3,
        wave(
            *("--client-rps", "80", "--obs-time", "1"),
            text=factories("kept.append(open(os.devnull))", "kept = []"),
            before="ulimit -n 64",
            like={"unsent": True},
        ),
        slow=True,
    ),
    Fault(
        "never-returns",
        "`invoke` never returns",
        "everything; requests in flight when the drain ends are abandoned",
        NOTHING,
        1,
        invoke("post(payload)", "gevent.sleep(1e6)", flags=(*SHORT, "--drain-timeout", "0.5")),
        slow=True,
    ),
    Fault(
        "session-raises",
        "a session's own code raises when it gets its first answer",
        "everything; the session is counted as raised",
        "the turns that it would have sent",
        3,
        wave(text=sessions("raise KeyError(number)")),
    ),
    Fault(
        "session-yields-nonsense",
        "a session yields something other than a turn, and its cleanup raises",
        "everything; the session is counted as raised",
        "the turns that it would have sent",
        3,
        wave(text=sessions("try:", "    yield number", "finally:", "    raise KeyError(number)")),
        slow=True,
    ),
    Fault(
        "conversations-cut-off",
        "a file of recorded conversations is cut off, and one of its lines is no conversation",
        "everything; the other conversations are sent",
        "the conversations of these lines; they are counted, and the first is named",
        0,
        cut_off_conversations,
        slow=True,
        says="2 lines without a conversation were left out, the first is line 4",
    ),
    Fault(
        "endless-stream",
        "`invoke` is a stream without end",
        "everything; requests in flight when the drain ends are abandoned",
        NOTHING,
        1,
        wave(
            *SHORT,
            "--drain-timeout",
            "0.5",
            text=factories("post(payload)\nwhile True:\n    yield 'token'\n    gevent.sleep(0.05)"),
        ),
        slow=True,
    ),
)
