"""``kubectl exec``: a command in a container, whose pipes are channels of a WebSocket (v5.channel.k8s.io)."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence
    from typing import IO

    from tests.kube.sandbox import Sandbox
    from tests.kube.websocket import WebSocket

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_STDIN, _STDOUT, _STDERR, _ERROR, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255
_BLOCK = 32 * 1024


def execute(
    sandbox: Sandbox,
    command: Sequence[str],
    streams: set[str],
    channel: WebSocket,
    is_let_through: Callable[[int], bool],
) -> None:
    """Run a command until it ends. ``is_let_through`` is asked before so many bytes are sent.

    A command whose other side is gone goes on, as in a real cluster, but has no standard input any more.
    """
    process = sandbox.execute(command)
    outputs = [(_STDOUT, process.stdout, "stdout" in streams), (_STDERR, process.stderr, "stderr" in streams)]
    senders = [
        threading.Thread(target=_pass_on, args=(number, pipe, channel if is_wanted else None, is_let_through))
        for number, pipe, is_wanted in outputs
    ]
    for sender in senders:
        sender.start()
    feeder = threading.Thread(target=_feed, args=(process, channel, "stdin" in streams), daemon=True)
    feeder.start()
    for sender in senders:
        sender.join()
    code = process.wait()
    with suppress(OSError):
        channel.send(bytes([_ERROR]) + json.dumps(_status(code)).encode())
        channel.close()


def _pass_on(
    number: int, pipe: IO[bytes] | None, channel: WebSocket | None, is_let_through: Callable[[int], bool]
) -> None:
    assert pipe is not None
    while block := pipe.read1(_BLOCK):  # type: ignore[attr-defined]
        if channel is None or not is_let_through(len(block)):
            channel = None
            continue
        try:
            channel.send(bytes([number]) + block)
        except OSError:
            channel = None


def _feed(process: subprocess.Popen[bytes], channel: WebSocket, is_open: bool) -> None:
    assert process.stdin is not None
    if not is_open:
        process.stdin.close()
    with suppress(OSError, ValueError):
        while (message := channel.receive()) is not None:
            if message[:1] == bytes([_STDIN]):
                process.stdin.write(message[1:])
                process.stdin.flush()
            elif message == bytes([_CLOSE, _STDIN]):
                process.stdin.close()
    with suppress(OSError, ValueError):
        process.stdin.close()


def _status(code: int) -> dict[str, Any]:
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    number = 128 - code if code < 0 else code
    text = f"command terminated with non-zero exit code: exit status {number}"
    causes = {"causes": [{"reason": "ExitCode", "message": str(number)}]}
    return {
        "metadata": {},
        "status": "Failure",
        "message": text,
        "reason": "NonZeroExitCode",
        "details": causes,
    }
