"""One kept HTTP/1.1 connection: a gevent socket, and the answers that come over it."""

from __future__ import annotations

from select import POLLIN
from time import monotonic
from typing import TYPE_CHECKING, Any

from gevent import get_hub, getcurrent
from gevent.monkey import get_original
from gevent.ssl import SSLSocket

from inference_benchmarker.answer_size import AnswerTooLargeError
from inference_benchmarker.clients.answer_parser import AnswerParser
from inference_benchmarker.clients.decoding import UndecodableAnswerError, decoder_of, whole

if TYPE_CHECKING:
    from gevent.socket import socket

    from inference_benchmarker.clients.decoding import Decoder

_BLOCK = 16 * 1024
_ENCODING = "content-encoding"
_READ = 1  # libev's event
# The process's own, which gevent has replaced: to look at a socket takes no turn of the loop.
_poll = get_original("select", "poll")


class ReadTimeoutError(TimeoutError):
    """The server sent nothing for as long as ``read_timeout_s``."""


class ConnectionClosedError(ConnectionError):
    """The server closed the connection before it answered."""


class Connection(AnswerParser):
    """One exchange at a time: ``send``, ``read_head``, then ``read_piece`` or ``read_body``.

    What is read of a body is as it was before the server compressed it, unless ``decodes`` is False.
    ``status``, ``headers`` and ``complete`` are those of the answer. A connection that raised is of no further use and
    must be closed.
    """

    def __init__(self, sock: socket, read_timeout_s: float | None, *, decodes: bool = True) -> None:
        super().__init__()
        sock.settimeout(None)  # gevent would make a timer for every read; ours lives as long as the connection
        self._sock = sock
        self._receive = sock.recv
        # Of a socket that gave all it had, the next read would fail first, at a third of the cost of waiting. TLS may
        # hold back bytes of which the socket knows nothing.
        self._hub = get_hub()
        self._watcher: Any = None if isinstance(sock, SSLSocket) else self._hub.loop.io(sock.fileno(), _READ)
        self._drained = False
        self._readable = _poll()
        self._readable.register(sock.fileno(), POLLIN)
        self._timeout_s = read_timeout_s
        self._timer: Any = None
        self._waiting: Any = None  # the greenlet that waits for the server, to send or to read
        self._reader: Any = None  # the same while our watcher is to wake it
        self._heard = 0.0
        self.settled_at = 0.0  # the pool's: while it is idle, from when on the server is not about to close it
        self._decodes = decodes
        self._decoder: Decoder | None = None

    def is_quiet(self) -> bool:
        """Tells whether the server has left an idle connection as it was: neither closed it nor sent anything."""
        return not self._readable.poll(0)

    def send(self, method: str, request: bytes) -> None:
        """Send a whole request."""
        self.begin(method)
        self.complete = False
        self._heard = monotonic()
        if self._timer is None and self._timeout_s is not None:
            self._set_timer(self._timeout_s)
        self._waiting = getcurrent()
        try:
            self._sock.sendall(request)
        except (BrokenPipeError, ConnectionResetError):
            self._spoilt = True  # the server takes no more; its answer, which says why, may be here
        finally:
            self._waiting = None
        self._heard = monotonic()  # a long request is not the server's silence

    def read_head(self) -> None:
        """Wait for the head of the answer."""
        while not self.head_read:
            self._read()
        self._decoder = self._make_decoder() if self._decodes and _ENCODING in self.headers else None

    def read_piece(self) -> bytes:
        """The bytes of the body that came since the last call, waiting for some; nothing at its end."""
        while True:
            while not self.pieces:
                if self.complete:
                    if self._decoder is not None:
                        self._decoder.end()
                    return b""
                self._read()
            piece = b"".join(self.pieces)
            self.pieces.clear()
            if self._decoder is None or (piece := self._decoder.decode(piece)):
                return piece

    def read_body(self) -> bytes:
        """All that is left of the body."""
        while not self.complete:
            self._read()
        body = b"".join(self.pieces)
        return body if self._decoder is None else self._decoded(self._decoder, body)

    def close(self) -> None:
        """Close the socket, and wake nobody any more."""
        if self._timer is not None:
            self._timer.close()
            self._timer = None
        if self._watcher is not None:
            self._watcher.close()
        self._sock.close()

    def _make_decoder(self) -> Decoder | None:
        try:
            return decoder_of(self.headers[_ENCODING])
        except UndecodableAnswerError:
            if self._is_success:
                raise
            return None

    def _decoded(self, decoder: Decoder, body: bytes) -> bytes:
        """The body; that of an error as it came where it cannot be decoded, as its status says more."""
        try:
            return whole(decoder, body)
        except (UndecodableAnswerError, AnswerTooLargeError):
            if self._is_success:
                raise
            return body

    @property
    def _is_success(self) -> bool:
        return 200 <= self.status < 300

    def _read(self) -> None:
        self._waiting = getcurrent()
        try:
            if self._drained:
                self._await_bytes()
            data = self._receive(_BLOCK)
        finally:
            self._waiting = None
        self._drained = len(data) < _BLOCK and self._watcher is not None
        self._heard = monotonic()
        if data:
            self.parse(data)
        elif not self.begun:
            raise ConnectionClosedError("the server closed the connection before it answered")
        else:
            self.end()

    def _await_bytes(self) -> None:
        if not self._watcher.active:
            self._watcher.start(self._on_readable)
        self._reader = self._waiting
        try:
            self._hub.switch()
        finally:
            self._reader = None

    def _on_readable(self) -> None:
        """In the hub. The watcher stays started between reads, which is cheaper than to start it for each."""
        if self._reader is None:
            self._watcher.stop()  # or it would call again and again
        else:
            self._reader.switch()

    def _set_timer(self, seconds: float) -> None:
        self._timer = self._hub.loop.timer(seconds, priority=-1)  # after what has come, where both are due
        self._timer.start(self._ring)

    def _ring(self) -> None:
        """One timer serves many reads: it rings after the time-out at the earliest, and is set for what is left."""
        self._timer.close()
        self._timer = None
        if self.complete:
            return
        assert self._timeout_s is not None
        now = monotonic()
        if self._waiting is None:  # nobody listens, so this is not the server's silence
            self._heard = now
        left = self._heard + self._timeout_s - now
        if left > 0:
            self._set_timer(left)
        else:
            self._waiting.throw(ReadTimeoutError(f"no data arrived for {self._timeout_s:g} s"))
