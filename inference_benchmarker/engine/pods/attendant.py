"""The attendant of a wave in its pod: tells a command far away what the wave says, and hands out its results.

``kubectl exec`` starts it, and a connection that breaks ends it: the next one asks for what is lacking.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import signal
import stat
import time
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.hosts.transport import Lines
from inference_benchmarker.engine.pods.objects import FETCHED, RUNS, SAID
from inference_benchmarker.engine.pods.terms import BEAT_S, BLOCK, LEASE_S
from inference_benchmarker.system.files import add_text, opened, read_bytes, replace_file
from inference_benchmarker.system.followed import COLUMNS, KEYS, PLACES, SCREEN
from inference_benchmarker.version import __version__
from inference_benchmarker.wave.run_dir import STAMPED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.engine.hosts.transport import Message, Speaking

_POLL_S = 0.1
_APART_S = 5.0  # of the clocks of a volume and of this pod
_AT_ONCE = 1 << 16
_LAST_S = 10.0  # that its last message may take
_MOST = 64  # bytes of a number


class Attendant:
    """Does what the command asks, until it hears no more. ``said``, ``runs``: the folders of ``objects``."""

    def __init__(self, lines: Speaking, said: Path = Path(SAID), runs: Path = Path(RUNS)) -> None:
        self._lines = lines
        self._said, self._runs = said, runs
        self._asked: SimpleQueue[Message] = SimpleQueue()
        self._heard_at = self._beaten_at = time.monotonic()
        self._at: int | None = None  # in the words of the wave, once somebody follows
        self._is_to_end = False  # as soon as it has begun
        self._is_watched = False  # on a terminal
        self._shown_ns = 0

    def run(self) -> None:
        """Until it is over."""
        self._lines.start(lambda message, _: self._asked.put(message), lambda: self._asked.put({"do": "close"}))
        self._lines.send({"say": "hello", "version": __version__})
        while time.monotonic() < self._heard_at + LEASE_S:
            with suppress(Empty):
                message = self._asked.get(timeout=_POLL_S)
                if message.get("do") == "close":
                    break
                self._heard_at = time.monotonic()
                self._do(message)
            self._end_wave()
            self._pass_on()
            self._show()
            self._beat()
        self._lines.end(_LAST_S)

    def _do(self, message: Message) -> None:
        match message:
            case {"do": "follow", "at": int(at)}:
                self._at = at
            case {"do": "places", "nodes": dict(nodes)}:
                self._leave(PLACES, json.dumps(nodes))
            case {"do": "columns", "columns": int(columns)}:
                self._leave(COLUMNS, str(columns))
                self._is_watched = True
            case {"do": "keys", "keys": str(keys)}:
                self._press(keys)
            case {"do": "end"}:
                self._is_to_end = True
            case {"do": "list"}:
                files = {str(path.relative_to(self._runs)): path.stat().st_size for path in self._files()}
                self._lines.send({"say": "files", "files": files})
            case {"do": "block", "file": str(name), "at": int(at)}:
                self._lines.send(self._block(name, at))
            case {"do": "fetched"}:
                (self._runs / Path(FETCHED).name).touch()
                self._lines.send({"say": "confirmed"})
            case _:
                pass

    def _leave(self, name: str, text: str) -> None:
        """Leave something for the wave, which may not have begun."""
        with suppress(OSError):
            self._said.mkdir(exist_ok=True)
            replace_file(self._said / name, text, is_lasting=False)

    def _press(self, keys: str) -> None:
        """Press keys; none says that somebody could press some."""
        with suppress(OSError):
            self._said.mkdir(exist_ok=True)
            add_text(self._said / KEYS, keys)
            os.utime(self._said / KEYS)

    def _pass_on(self) -> None:
        """Pass on the words of the wave, by whole lines, and after the last one that it has ended."""
        if self._at is None:
            return
        code = self._number("code")
        if text := self._words(self._at, is_whole=code is not None):
            self._at += len(text)
            self._lines.send({"say": "words", "text": text.decode(errors="replace"), "at": self._at})
        elif code is not None:
            self._at = None
            self._lines.send({"say": "ended", "code": code})

    def _show(self) -> None:
        """Pass on the panel of the wave, if it has changed and somebody sees it."""
        path = self._said / SCREEN
        with suppress(OSError, ValueError):
            if self._is_watched and (changed_ns := path.stat().st_mtime_ns) != self._shown_ns:
                self._shown_ns = changed_ns
                self._lines.send({"say": "screen", "lines": json.loads(read_bytes(path, _AT_ONCE))})

    def _words(self, at: int, *, is_whole: bool) -> bytes:
        with suppress(OSError), opened(self._said / "words") as file:
            file.seek(at)
            found = file.read(_AT_ONCE)
            if is_whole and len(found) < _AT_ONCE:
                return found
            end = found.rfind(b"\n") + 1
            return found[:end] if end or len(found) < _AT_ONCE else found
        return b""

    def _number(self, name: str) -> int | None:
        """The number in a file of the pod's script, once it is there."""
        with suppress(OSError, ValueError):
            return int(read_bytes(self._said / name, _MOST))
        return None

    def _end_wave(self) -> None:
        """Let the wave end early, with its report, if somebody wants that."""
        if not self._is_to_end or (process := self._number("process")) is None:
            return
        self._is_to_end = False
        if self._number("code") is None:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)

    def _files(self) -> Iterator[Path]:
        """The files of the results of this wave; no link is followed. A volume may hold those of others."""
        began_at = (self._said / "process").stat().st_mtime - _APART_S
        for folder in sorted(self._runs.iterdir()):
            status = folder.lstat()
            if STAMPED.fullmatch(folder.name) and stat.S_ISDIR(status.st_mode) and status.st_mtime >= began_at:
                for above, _, names in os.walk(folder):
                    yield from (path for name in sorted(names) if _is_regular(path := Path(above) / name))

    def _block(self, name: str, at: int) -> dict[str, Any]:
        """A part of a file; nothing where it cannot be read."""
        data = b""
        with suppress(OSError, ValueError), opened(self._runs / name, self._runs) as file:
            file.seek(at)
            data = file.read(BLOCK)
        digest = hashlib.sha256(data).hexdigest()
        return {"say": "block", "file": name, "at": at, "sha256": digest, "data": base64.b64encode(data).decode()}

    def _beat(self) -> None:
        now = time.monotonic()
        if now >= self._beaten_at + BEAT_S:
            self._beaten_at = now
            self._lines.send({"say": "beat"})


def attend() -> None:
    """Serve a command over standard input and output, until it leaves."""
    Attendant(Lines(os.dup(0), os.dup(1))).run()


def _is_regular(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()
