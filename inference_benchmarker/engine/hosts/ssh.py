"""The way to a host through the user's own ``ssh``, whose configuration, agents, jumps and known hosts all count."""

from __future__ import annotations

import os
import secrets
import shlex
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from inference_benchmarker.engine.hosts.protocol import LEASE_S
from inference_benchmarker.engine.hosts.transport import Lines, in_command
from inference_benchmarker.engine.processes.child_logs import HiddenLines
from inference_benchmarker.system.output import EndlessOutputError, output_of
from inference_benchmarker.version import __version__
from inference_benchmarker.words.text import plain_lines, said

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import IO

    from inference_benchmarker.engine.hosts.transport import Message, Said

PREPARED = f".cache/inference-benchmarker/{__version__}"
"""The environment that ``benchmark hosts prepare`` makes there, in the home directory."""

MACHINE = "machine"
"""A file in it: the processor that it was made for."""

# No terminal, no agent and no windows there; no other connection is used or left behind, and nobody is asked anything.
# What ssh says is why a login failed: nothing more and no less, whatever the user has set.
# A host that says nothing for 18 s is given up: later than ``Link`` does where its lease could not be renewed.
OPTIONS = (
    *("-T", "-a", "-x"),
    *("-o", "BatchMode=yes"),
    *("-o", "LogLevel=INFO"),
    *("-o", "ControlMaster=no"),
    *("-o", "ControlPath=none"),
    *("-o", "RemoteCommand=none"),
    *("-o", "PermitLocalCommand=no"),
    *("-o", "ExitOnForwardFailure=no"),  # of the user's own forwardings; of ours the agent tells
    *("-o", "ServerAliveInterval=3"),
    *("-o", "ServerAliveCountMax=6"),
)
_LOGINS = threading.BoundedSemaphore(8)  # at a time: of more, sshd drops some (its MaxStartups)
_DROPPED = ("kex_exchange_identification", "Connection reset by", "Connection closed by")
_AGAIN_S = (0.5, 1.0, 2.0, 4.0)  # after which a login is tried again that was dropped
_AGENT = "inference_benchmarker.engine.hosts.agent"
_WORDS = 20
_LONGEST_WORDS = 1 << 16  # bytes of a line; of a longer one this much is looked at
_LOGIN_S = 10.0  # that a login keeps the others waiting: it may hang for ever
_OF_A_KNOCK = ("-o", "ConnectTimeout=3", "-o", "ClearAllForwardings=yes")  # the next knock is on its way by then
_END_S = 1.0  # that ssh gets to end when it is asked to
_NO_PYTHON = "no Python environment of InferenceBenchmarker was found there: `benchmark hosts prepare` installs one"
_CHANGED = "HOST IDENTIFICATION HAS CHANGED"  # nobody is advised to accept such a key
_MENDS = {
    "Permission denied (": "install your key there once with `ssh-copy-id {host}`",
    "Host key verification failed": "accept its key once with `ssh {host}`",
}

_NO_SOCKET = (
    "its SSH server forwards no Unix socket (AllowStreamLocalForwarding in its sshd_config): "
    "allow it, or let the workers come to an address of this machine with --listen"
)
_REFUSED = "forwarding failed"

# One line, for shells that take no more within quotes; none of it is a csh's history.
_SCRIPT = (
    f'made=$(cat "$HOME/{PREPARED}/{MACHINE}" 2>/dev/null); is=$(uname -m); '
    'case "$made" in ""|"$is") ;; *) '
    'echo "benchmark hosts prepare installed it for $made, and the processor is $is: prepare it again" >&2; '
    "exit 126;; esac; "
    'for python in {pythons}; do if [ -x "$python" ]; then exec "$python" -P -m {agent} {marker}; fi; done; '
    "echo {no_python} >&2; exit 127"
)


class SshTransport:
    """A login on ``host``, in which an agent runs; see ``Transport``.

    ``socket``: the one here to which one there can lead. ssh asks for that one over its own control socket, in the same
    folder, once there is an agent: sshd makes it in the agent's folder and goes away without it, however a login ends.
    """

    mend = "`benchmark hosts prepare` installs it"

    def __init__(self, host: str, socket: Path | None) -> None:
        self._host = host
        self._socket = socket
        self._closing = threading.Event()
        self._words: deque[str] = deque(maxlen=_WORDS)
        self._words_whole = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: Path | None = None
        self._lines: Lines | None = None
        self._knocks: list[subprocess.Popen[bytes]] = []
        self._joined = False
        self._waiting: list[Message | Said] = []
        self._lock = threading.Lock()

    def start(self, take: Callable[[Message, int], None], on_end: Callable[[], None]) -> None:
        """Log in, on a thread of its own: a login waits for its turn."""
        threading.Thread(target=self._log_in, args=(take, on_end), name=f"ssh {self._host}", daemon=True).start()

    def send(self, message: Message | Said) -> None:
        """Send a message; one that comes before the login waits for it."""
        with self._lock:
            if self._lines is None:
                self._waiting.append(message)
            else:
                self._lines.send(message)

    def lead_here(self, path: str) -> str | None:
        """Have sshd make the socket; see ``Transport``. The user's configuration has no part in it."""
        line = ["ssh", "-F", os.devnull, "-S", str(self._control), "-O", "forward"]
        try:
            done = output_of([*line, "-R", f"{path}:{self._socket}", "--", self._host], LEASE_S)
        except (OSError, EndlessOutputError, subprocess.TimeoutExpired):
            return "its SSH server did not answer when it was asked for a Unix socket"
        if not done.returncode:
            return None
        words = said(done.stderr.decode(errors="replace"), 300)
        return _NO_SOCKET if _REFUSED in words else f"ssh cannot ask for a Unix socket there: {words}"

    def knock(self, path: str, on_answer: Callable[[], None]) -> None:
        """Log in once more, and touch a file."""
        script = f"test -e {shlex.quote(path)} && touch {shlex.quote(path)}"
        line = ["ssh", *OPTIONS, *_OF_A_KNOCK, "--", self._host, f"exec /bin/sh -c {shlex.quote(script)}"]
        with self._lock, suppress(OSError):
            if self._closing.is_set():
                return
            nothing = subprocess.DEVNULL
            knock = subprocess.Popen(line, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)
            self._knocks.append(knock)
            threading.Thread(target=self._await_knock, args=(knock, on_answer), name="knock", daemon=True).start()

    def _await_knock(self, knock: subprocess.Popen[bytes], on_answer: Callable[[], None]) -> None:
        answered = knock.wait() == 0
        with self._lock:
            self._knocks.remove(knock)
        if answered:
            on_answer()
            self._end_knocks()

    def _end_knocks(self) -> None:
        with self._lock:
            for knock in self._knocks:
                knock.kill()

    def words(self) -> list[str]:
        """The last lines that ssh printed, and the host's start-up files, and an agent that could not begin."""
        return [*self._words, *mends(self._host, "\n".join(self._words))]

    def close(self, patience_s: float) -> None:
        """Close the login; ssh is ended where it does not end by itself in time, or is not in yet."""
        self._closing.set()
        self._end_knocks()
        with self._lock:
            lines, process = self._lines, self._process
        deadline = time.monotonic() + (patience_s if lines else 0.0)
        if lines:
            lines.end(patience_s)
        if process is None:
            return
        for end in (process.terminate, process.kill):
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                end()
                deadline = time.monotonic() + _END_S
        process.wait()

    def _log_in(self, take: Callable[[Message, int], None], on_end: Callable[[], None]) -> None:
        for wait_s in (*_AGAIN_S, None):
            over = self._try_login(take)
            if over is None:
                break
            over.wait()
            self._words_whole.wait(1.0)
            if wait_s is None or not self._was_dropped() or self._closing.wait(wait_s):
                break
        on_end()

    def _was_dropped(self) -> bool:
        return not self._joined and any(sign in word for word in self._words for sign in _DROPPED)

    def _try_login(self, take: Callable[[Message, int], None]) -> threading.Event | None:
        """The event of its end; None where there is no ssh, or nobody wants it any more."""
        over, self._joined = threading.Event(), False
        heard = threading.Event()

        def hear(message: Message, at: int) -> None:
            self._joined = True
            heard.set()
            take(message, at)

        def end() -> None:
            heard.set()
            over.set()

        with _LOGINS:
            with self._lock:
                if self._closing.is_set() or not (lines := self._started()):
                    return None
                lines.start(hear, end)
            heard.wait(_LOGIN_S)
        heard.wait()
        with self._lock:
            self._lines = lines if self._joined else None
            for message in self._waiting if self._joined else ():
                lines.send(message)
            if self._joined:
                self._waiting = []
        return over

    def _started(self) -> Lines | None:
        marker = secrets.token_hex(16)
        self._words.clear()
        self._words_whole.clear()
        self._control = self._socket and self._socket.with_name(secrets.token_hex(4))
        controlled = () if self._control is None else ("-M", "-S", str(self._control), "-o", "ControlPersist=no")
        line = ["ssh", *OPTIONS, *controlled, "--", self._host, _command(in_command(marker))]
        (their_input, writing), (reading, their_output) = os.pipe(), os.pipe()
        try:
            # In a session of its own: Ctrl-C is this process's to hear.
            process = subprocess.Popen(
                line, stdin=their_input, stdout=their_output, stderr=subprocess.PIPE, start_new_session=True
            )
        except OSError as error:
            self._words.append(f"ssh: {error.strerror}")
            os.close(reading)
            os.close(writing)
            return None
        finally:
            os.close(their_input)
            os.close(their_output)
        self._process = process
        threading.Thread(target=self._read_words, args=(process,), name="ssh-words", daemon=True).start()
        return Lines(reading, writing, marker)

    def _read_words(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None
        lines = HiddenLines()
        with process.stderr, suppress(OSError, ValueError):
            for line in _lines_of(process.stderr):
                self._add_words(lines.after(line.decode(errors="replace").rstrip("\r\n")))
        self._add_words(lines.rest())
        self._words_whole.set()

    def _add_words(self, lines: list[str]) -> None:
        self._words.extend(word[:500] for line in lines if (word := plain_lines(line).strip()))


def _lines_of(stream: IO[bytes]) -> Iterator[bytes]:
    """The lines of a stream, each up to ``_LONGEST_WORDS`` bytes: what has no end fills no memory."""
    while line := stream.readline(_LONGEST_WORDS):
        yield line
        while line and not line.endswith(b"\n"):
            line = stream.readline(_LONGEST_WORDS)


def mends(host: str, said: str) -> list[str]:
    """The line that mends what ssh said of a host, where there is one; ``_MENDS`` has them."""
    if _CHANGED in said:
        return []
    return [mend.format(host=shlex.quote(host)) for sign, mend in _MENDS.items() if sign in said]


def _command(marker: str) -> str:
    """The command that starts the agent there, whatever shell the user has."""
    here = shlex.quote(sys.executable)
    words = {"pythons": f'"$HOME/{PREPARED}/bin/python" {here}', "agent": _AGENT, "marker": marker}
    script = _SCRIPT.format(**words, no_python=shlex.quote(_NO_PYTHON))
    return f"exec /bin/sh -c {shlex.quote(script)}"
