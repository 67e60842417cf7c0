"""The connections of a client: kept, as many as there are requests in flight, and never one request sent twice."""

from __future__ import annotations

from errno import ECONNREFUSED
from os import PathLike
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

import gevent.ssl
from gevent import Timeout
from gevent.socket import IPPROTO_TCP, TCP_NODELAY, create_connection
from gevent.ssl import SSLCertVerificationError

from inference_benchmarker.clients.connection import Connection, ConnectionClosedError
from inference_benchmarker.url import PORTS, http_address

if TYPE_CHECKING:
    from ssl import SSLContext

    from gevent.socket import socket


# llama.cpp's server promises to keep a connection, and closes it some moments after a stream's last byte. For so long
# what is sent over it may be lost.
_SETTLED_S = 0.05


_TRUST = " (to trust a certificate of your own: SSL_CERT_FILE=FILE.pem in the environment)"


class ConnectTimeoutError(TimeoutError):
    """No connection stood, TLS included, after ``connect_timeout_s``."""


class Limits(NamedTuple):
    """The longest waits, in seconds; None: for ever."""

    connect_timeout_s: float | None = 5.0
    read_timeout_s: float | None = 60.0


class Answer(NamedTuple):
    """A whole answer; names of headers in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Pool:
    """The idle connections to one server, the one used last on top, so that as few as possible are kept warm.

    There is no limit: a request never waits for another's connection. An idle connection that the server has closed
    is dropped before anything is sent over it. What fails after that is not repeated, because the server may have
    taken it up: a request is sent once, or never. Of a server that has closed one, or that speaks of Keep-Alive, those
    whose stream has only just ended are passed over until one has outlived its stream.
    """

    def __init__(
        self, url: str, verify: bool | str | PathLike[str] | SSLContext, limits: Limits, *, decodes: bool = True
    ) -> None:
        parts = http_address(url)
        if parts is None or parts.hostname is None:
            raise ValueError(f"{url!r} is not the URL of a server: it must look like https://host:port/path")
        if parts.query:
            raise ValueError(f"the URL of {parts.hostname} has a query; give it with a request's path, as in '/v1?x=1'")
        if parts.username is not None:
            raise ValueError(
                f"the URL of {parts.hostname} names a user; give a header instead: Authorization: Basic ..."
            )
        self._context = tls_context(verify) if parts.scheme == "https" else None
        self._address = (parts.hostname, parts.port or PORTS[parts.scheme])
        self._limits = limits
        self._decodes = decodes
        self._idle: list[Connection] = []
        self._keeps: bool | None = None  # connections outlive streams, as far as is known
        self.path = parts.path.rstrip("/")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        self._place = f"{host}:{self._address[1]}"
        self.host = host if parts.port in (None, PORTS[parts.scheme]) else self._place

    def exchange(self, method: str, request: bytes) -> Answer:
        """Send a request and read the whole answer."""
        connection = self.ask(method, request)
        try:
            return Answer(connection.status, connection.headers, connection.read_body())
        finally:
            self._put_back(connection, 0.0)

    def ask(self, method: str, request: bytes) -> Connection:
        """Send a request and read the answer's head. The connection must be released whatever becomes of it."""
        connection = self._take()
        try:
            connection.send(method, request)
            connection.read_head()
        except BaseException as error:
            connection.close()
            if isinstance(error, ConnectionClosedError):
                self._keeps = False
            raise
        return connection

    def release(self, connection: Connection) -> None:
        """Keep a connection whose answer was read to its end; close any other."""
        doubtful = self._keeps is False or (self._keeps is None and "keep-alive" in connection.headers)
        self._put_back(connection, monotonic() + _SETTLED_S if doubtful else 0.0)

    def _put_back(self, connection: Connection, settled_at: float) -> None:
        if connection.reusable:
            connection.settled_at = settled_at
            self._idle.append(connection)
        else:
            connection.close()

    def _take(self) -> Connection:
        while connection := self._settled():
            if connection.is_quiet():
                if connection.settled_at:
                    self._keeps = True
                return connection
            connection.close()
            self._keeps = False
        return self._connect()

    def _settled(self) -> Connection | None:
        """The idle connection used last, of those that the server is not about to close."""
        for place in range(len(self._idle) - 1, -1, -1):
            if self._keeps or self._idle[place].settled_at <= monotonic():
                return self._idle.pop(place)
        return None

    def _connect(self) -> Connection:
        limit = self._limits.connect_timeout_s
        late = ConnectTimeoutError(f"no connection to {self._place} within {limit} s")
        with Timeout(limit, late):
            sock = self._reach()
            late.args = (
                f"connected, but there was no TLS handshake with {self._place} within {limit} s: is it an http server?",
            )
            try:
                sock.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
                if self._context is not None:
                    sock = self._secured(sock, self._context)
                return Connection(sock, self._limits.read_timeout_s, decodes=self._decodes)
            except BaseException:
                sock.close()
                raise

    def _secured(self, sock: socket, context: SSLContext) -> socket:
        try:
            return context.wrap_socket(sock, server_hostname=self._address[0])
        except SSLCertVerificationError as error:
            error.strerror = f"{error.strerror}: {self._place}{_TRUST}"
            raise

    def _reach(self) -> socket:
        try:
            return create_connection(self._address)
        except OSError as error:
            if error.strerror:  # the system's words, which do not say where; not those of our time-out, which do
                hint = " (is the server running there?)" if error.errno == ECONNREFUSED else ""
                error.strerror += f": {self._place}{hint}"
            raise


def tls_context(verify: bool | str | PathLike[str] | SSLContext) -> SSLContext:
    """True: the system's authorities; a path: those in that file; False: whatever the server shows; or one of yours."""
    if not isinstance(verify, (bool, str, PathLike)):
        return verify
    # Not create_default_context: its sockets wait without gevent unless the process is patched.
    context: SSLContext = gevent.ssl.SSLContext(gevent.ssl.PROTOCOL_TLS_CLIENT)
    if verify is True:
        context.load_default_certs()
    elif verify is False:
        context.check_hostname = False
        context.verify_mode = gevent.ssl.CERT_NONE
    else:
        _trust(context, verify)
    return context


def _trust(context: SSLContext, path: str | PathLike[str]) -> None:
    """Trust the authorities of a file or a folder. Raises OSError and ValueError that name it."""
    place = Path(path)
    try:
        if place.is_dir():
            context.load_verify_locations(capath=place)
        else:
            context.load_verify_locations(place)
    except gevent.ssl.SSLError as error:  # an OSError whose numbers are no errno
        raise ValueError(f"verify={str(path)!r} has no certificates that can be read (PEM): {error.reason}") from error
    except OSError as error:
        raise type(error)(error.errno, f"verify=: {error.strerror}", str(path)) from None
