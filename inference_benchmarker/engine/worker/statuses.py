"""The statuses of the HTTP responses that requests received, heard of where client libraries make these.

``invoke`` may return what it read of a response, and then nobody sees its status.
"""

from __future__ import annotations

import sys
from functools import wraps
from typing import TYPE_CHECKING, Any

from gevent.thread import get_ident

from inference_benchmarker.facts.returned import FAILED, LAST_STATUS

if TYPE_CHECKING:
    from collections.abc import Callable

failed_statuses: dict[int, int] = {}
"""By greenlet, the status of the last response that it received, where that says that the request failed."""

_MOST = 10_000  # greenlets of the user's own, which come and go
_hooked: set[str] = set()


def hook() -> None:
    """Hear of the responses of those libraries that are loaded by now; for good.

    requests, urllib3, botocore and urllib have those of ``http.client``. The product's own clients raise.
    """
    hear("http.client", "HTTPResponse", "begin", lambda response, _: response.status)
    for name in ("httpx", "httpx2"):
        hear(name, "Response", "__init__", lambda response, _: response.status_code)
    hear("geventhttpclient", "HTTPClient", "request", lambda _, response: response.status_code)


def hear(module: str, owner: str, method: str, status_of: Callable[[Any, Any], Any]) -> None:
    """Hear of the responses that a method of a module's class makes: ``status_of`` its object and what it returned."""
    if module in _hooked or module not in sys.modules:
        return
    _hooked.add(module)
    holder = getattr(sys.modules[module], owner, None)
    original = getattr(holder, method, None)
    if original is None:  # a version that works otherwise: its statuses are not seen
        return

    @wraps(original)
    def heard(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        note(status_of(self, result))
        return result

    setattr(holder, method, heard)


def note(status: Any) -> None:
    """Note the status of a response that this greenlet received."""
    if type(status) is int and FAILED <= status <= LAST_STATUS:
        if len(failed_statuses) >= _MOST:
            failed_statuses.clear()
        failed_statuses[get_ident()] = status
    elif failed_statuses:
        failed_statuses.pop(get_ident(), None)


def take() -> int | None:
    """The status that this greenlet's last response failed with; None where it did not. It is forgotten."""
    return failed_statuses.pop(get_ident(), None)
