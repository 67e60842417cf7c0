"""One HTTP GET with a deadline, whose failures are sentences. Secrets are taken from a given environment."""

from __future__ import annotations

import base64
import http.client
import ipaddress
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.in_time import in_time
from inference_benchmarker.words.text import said

if TYPE_CHECKING:
    from collections.abc import Mapping

    from server_capacity.metrics.prometheus.block import Credentials

MOST_BYTES = 64 * 2**20
_MOST_AT_ONCE = 64 * 1024
_SHOWN = 200
_NAMES_ITSELF = ("server", "x-served-by", "x-hostname", "x-host", "x-pod", "x-pod-name", "x-instance-id", "x-backend")
_SPARE_S = 0.2  # beyond the time-out: what the request itself has to say comes first
_ADVICE = 'name the variable that holds the token in "bearer_token_env", or see that it may read metrics'


class WebError(Exception):
    """Why there is no answer. ``unreachable``: there is no use in asking the same server for something else now."""

    def __init__(self, reason: str, unreachable: bool = False) -> None:
        super().__init__(reason)
        self.unreachable = unreachable


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of any status; ``date`` in unix seconds, where the server reports it.

    ``server``: the headers in which a server names itself, and ``peer`` the address that answered; empty where unknown.
    """

    status: int
    text: str
    kind: str
    date: float | None
    server: str = ""
    peer: str = ""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect is an error, and not followed: the token is meant for the server that is named."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Signs(Protocol):
    """Whoever signs requests; ``advice``: what to look at where one is refused; ``secrets``: what no line may show."""

    advice: str
    secrets: list[str]

    def headers(self, url: str) -> dict[str, str]:
        """The headers of a signed GET."""


class Web:
    """Asks with the block's credentials, or signed. BenchmarkError where a variable that the block names is not set."""

    def __init__(self, credentials: Credentials, environment: Mapping[str, str], signer: Signs | None = None) -> None:
        self._headers = {"User-Agent": "inference-benchmarker"}
        self._secret = ""
        self._signer = signer
        if name := credentials.token_variable:
            self._secret = _secret(environment, name)
            self._headers["Authorization"] = f"Bearer {self._secret}"
        elif name := credentials.password_variable:
            self._secret = _secret(environment, name)
            pair = f"{credentials.user}:{self._secret}".encode()
            self._headers["Authorization"] = "Basic " + base64.b64encode(pair).decode()

    def get(self, url: str, accept: str, timeout_s: float) -> Reply:
        """The answer, whatever its status. Raises WebError where none came in time."""
        signed = self._signer.headers(url) if self._signer else {}
        headers = {**self._headers, "Accept": accept, **signed}
        request = urllib.request.Request(url, headers=headers)  # noqa: S310  http(s) only
        place = urlsplit(url).netloc
        try:
            return in_time(lambda: _reply(request, timeout_s), timeout_s + _SPARE_S)
        except TimeoutError:
            raise WebError(f"{place} did not answer within {timeout_s:g} s", unreachable=True) from None
        except urllib.error.URLError as error:
            if isinstance(error.reason, TimeoutError):
                raise WebError(f"{place} did not answer within {timeout_s:g} s", unreachable=True) from None
            why = getattr(error.reason, "strerror", None) or error.reason
            raise WebError(f"{place} cannot be reached ({why})", unreachable=True) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            text = str(error) or type(error).__name__
            raise WebError(f"{place} did not speak HTTP to the end ({self.hide(text)})", unreachable=True) from None

    def hide(self, text: str) -> str:
        """A server's words without the secret, in one line, cut where they get long."""
        secrets = (self._secret, *(self._signer.secrets if self._signer else ()))
        return said(text, _SHOWN, filter(None, secrets))

    def refusal(self, reply: Reply, words: str = "") -> str:
        """The meaning of a status that is no success, and what to do."""
        text = f"HTTP {reply.status} {http.client.responses.get(reply.status, '')}".rstrip()
        text += f": {self.hide(words)}" if words else ""
        if reply.status in (401, 403) or (reply.status == 400 and self._signer and "ignature" in words):
            return f"{text}; {self._signer.advice if self._signer else _ADVICE}"
        if 300 <= reply.status < 400:
            return f"{text}; redirects are not followed: give the URL that it leads to"
        return text


def _reply(request: urllib.request.Request, timeout_s: float) -> Reply:
    deadline = time.monotonic() + timeout_s
    with _open(request, timeout_s) as response:
        peer = _peer(response)
        content = _read(response, deadline)
        kind, date = response.headers.get("Content-Type", ""), _date(response.headers.get("Date"))
        named = [f"{name}: {value}" for name in _NAMES_ITSELF if (value := response.headers.get(name))]
        return Reply(response.status, content.decode("utf-8", "replace"), kind, date, ", ".join(named), peer)


def _peer(response: Any) -> str:
    """The address at the other end; empty where the response does not give its socket."""
    try:
        return str(response.fp.raw._sock.getpeername()[0])  # noqa: SLF001 - urllib has no other way
    except (AttributeError, OSError, IndexError):
        return ""


def _open(request: urllib.request.Request, timeout_s: float) -> Any:
    handlers: list[Any] = [_NoRedirects()]
    if _is_loopback(urlsplit(request.full_url).hostname or ""):
        handlers.append(urllib.request.ProxyHandler({}))
    try:
        return urllib.request.build_opener(*handlers).open(request, timeout=timeout_s)
    except urllib.error.HTTPError as error:
        return error  # an answer as any other


def _read(response: Any, deadline: float) -> bytes:
    content = bytearray()
    while part := response.read1(_MOST_AT_ONCE) if hasattr(response, "read1") else response.read(_MOST_AT_ONCE):
        content += part
        if len(content) > MOST_BYTES:
            raise ValueError(f"more than {MOST_BYTES >> 20} MiB")
        if time.monotonic() > deadline:
            raise TimeoutError
    if getattr(response, "length", None):
        raise http.client.IncompleteRead(bytes(content), response.length)
    return bytes(content)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _date(text: str | None) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp() if text else None
    except (ValueError, TypeError):
        return None


def _secret(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "").strip()
    if not value:
        raise BenchmarkError(f"The environment variable {name} that the prometheus block names is not set.")
    if not (value.isascii() and value.isprintable()):
        raise BenchmarkError(f"The environment variable {name} has characters that no HTTP header can carry.")
    return value
