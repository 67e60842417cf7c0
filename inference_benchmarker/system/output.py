"""Runs another program for what it prints, of which there may be no end: memory and time are bounded."""

from __future__ import annotations

import os
import subprocess
import time
from selectors import EVENT_READ, DefaultSelector
from typing import IO, TYPE_CHECKING

from inference_benchmarker.words.units import MIB
from inference_benchmarker.words.wording import size_text

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST = 4 * MIB
"""Bytes that a program may print on either stream."""
_AT_ONCE = 1 << 16


class EndlessOutputError(Exception):
    """The program printed more than ``MOST``, and was ended."""

    def __init__(self) -> None:
        super().__init__(f"it printed more than {size_text(MOST)}")


def output_of(
    line: Sequence[str], timeout_s: float, stdin: int | IO[bytes] = subprocess.DEVNULL
) -> subprocess.CompletedProcess[bytes]:
    """A program that has ended, with all that it printed.

    Raises OSError where it cannot be started; EndlessOutputError, and subprocess.TimeoutExpired, once it is killed.
    """
    deadline = time.monotonic() + timeout_s
    printed = bytearray(), bytearray()
    with (
        subprocess.Popen(line, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as process,
        DefaultSelector() as selector,
    ):
        try:
            for pipe, said in zip((process.stdout, process.stderr), printed, strict=True):
                assert pipe is not None
                selector.register(pipe, EVENT_READ, said)
            while selector.get_map():
                if (left_s := deadline - time.monotonic()) <= 0:
                    raise subprocess.TimeoutExpired(line, timeout_s)
                for key, _ in selector.select(left_s):
                    piece = os.read(key.fd, _AT_ONCE)
                    key.data.extend(piece)
                    if not piece:
                        selector.unregister(key.fileobj)
                    elif len(key.data) > MOST:
                        raise EndlessOutputError
            process.wait(max(deadline - time.monotonic(), 0.0))
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(line, process.returncode, bytes(printed[0]), bytes(printed[1]))
