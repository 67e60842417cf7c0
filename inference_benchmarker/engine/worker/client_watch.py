"""Watches what client libraries do beneath ``invoke``: connections, full pools, waits for a connection, retries.

Nothing here runs once a request but where a library does more than it was asked for.
"""

from __future__ import annotations

import ctypes
import logging
import os.path
import random
import sys
from collections import Counter
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gevent.socket import AF_INET, AF_INET6, SOCK_STREAM, socket

import inference_benchmarker
from inference_benchmarker.engine.worker import statuses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType

    from inference_benchmarker.engine.worker.in_flight import Slot

Wait = Literal["connection", "lock", "future", "aside", "network"]
MOST_LOOKS = 50  # requests in flight that are looked at, at a time
# Where a greenlet is parked that waits for a connection: the end of a file's path, and the function.
POOL_WAITS = (
    ("geventhttpclient/connectionpool.py", "get_socket"),
    ("urllib3/connectionpool.py", "_get_conn"),
    ("httpcore/_sync/connection_pool.py", "wait_for_connection"),
    ("httpcore2/_sync/connection_pool.py", "wait_for_connection"),
)
LOCKS = ("threading.py", "queue.py", "_synchronization.py")
THREADING_LOCKS = ("gevent/thread.py", "threading.py")  # a lock, and what is made of locks
FUTURE = ("concurrent/futures/_base.py", "result")
FULL_GREENLETS = ("gevent/pool.py", "add")  # a pool of greenlets that are all busy
NETWORK = (
    "gevent/_socketcommon.py",
    "gevent/_socket3.py",
    "gevent/ssl.py",
    "gevent/select.py",
    "gevent/selectors.py",
    "zmq/green/core.py",
)
NETWORK_PACKAGES = (f"{Path(inference_benchmarker.__file__).parent.as_posix()}/", "-packages/grpc/")  # they wait in C
_LOOKS_FOR_ANY = 10  # reports in which a process without connections is looked at: that takes a while
_OWN = 1  # the connection to the primary
_LIBC = ctypes.CDLL(None)
_FAMILY_BYTE = int(sys.platform == "darwin")  # of a socket's address
FULL_POOL = "Connection pool is full"


class ClientWatch:
    """Counts since the last ``begin``; one for a process, because it hooks into the libraries for good."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._random = random.Random()
        self._hooked: set[str] = set()
        self._clear_s = 0.0
        self._clear_until_s: float | None = None
        self._seen: bool | None = None
        self._looks = 0
        self._hook_sockets()
        self._hook_pools()

    def begin(self) -> None:
        """Forget what the warm-up did."""
        self._counts.clear()
        self._clear_s, self._clear_until_s = 0.0, None

    def facts(self) -> dict[str, Any]:
        """The counts of ``client_use.Connections``."""
        names = ("opened", "discarded", "looked_at", "waiting", "locked", "aside", "retries")
        return {
            **{name: self._counts[name] for name in names},
            "clear_until_s": self._clear_until_s,
            "seen": self._seen,
        }

    def look(self, slots: Iterable[Slot], now_s: float) -> None:
        """See what some of the requests in flight wait for, ``now_s`` after wave start; hook into new libraries."""
        self.hook()
        if not self._seen and self._looks < _LOOKS_FOR_ANY:
            self._looks += 1
            self._seen = standing_connections() > _OWN
        held = self._held()
        self._look_at(slots)
        if self._held() == held:
            self._clear_s = now_s
        elif self._clear_until_s is None:
            self._clear_until_s = self._clear_s

    def _held(self) -> int:
        return self._counts["waiting"] + self._counts["locked"]

    def _look_at(self, slots: Iterable[Slot]) -> None:
        in_flight = [slot for slot in slots if slot.arrival is not None]
        everyone = len(in_flight)
        if everyone > MOST_LOOKS:
            in_flight = self._random.sample(in_flight, MOST_LOOKS)
        self._counts["looked_at"] += len(in_flight)
        frames = [slot.greenlet.gr_frame for slot in in_flight]
        waits = Counter(map(wait_of, frames))
        queued = min(waits["future"], queued_work() * len(in_flight) // everyone) if waits["future"] else 0
        self._counts["waiting"] += waits["connection"]
        self._counts["locked"] += waits["lock"] + queued
        self._counts["aside"] += waits["aside"] + waits["future"] - queued

    def _hook_sockets(self) -> None:
        connect, connect_ex = socket.connect, socket.connect_ex

        @wraps(connect)
        def counted_connect(sock: Any, address: Any) -> Any:
            result = connect(sock, address)
            self._opened(sock)
            return result

        @wraps(connect_ex)
        def counted_connect_ex(sock: Any, address: Any) -> Any:
            result = connect_ex(sock, address)
            if not result:
                self._opened(sock)
            return result

        socket.connect, socket.connect_ex = counted_connect, counted_connect_ex

    def _opened(self, sock: Any) -> None:
        self._seen = True
        if sock.family in (AF_INET, AF_INET6) and sock.type & SOCK_STREAM:
            self._counts["opened"] += 1

    def _hook_pools(self) -> None:
        """Count urllib3's warnings, at whatever level it logs; only the first is logged, or each request had a line."""
        log = logging.getLogger("urllib3.connectionpool")
        warn = log.warning

        def counted_warning(message: object, *args: Any, **kwargs: Any) -> None:
            if str(message).startswith(FULL_POOL):
                self._counts["discarded"] += 1
                if self._counts["discarded"] > 1:
                    return
            warn(message, *args, **kwargs)

        log.warning = counted_warning  # type: ignore[assignment,method-assign]

    def hook(self) -> None:
        """Count the retries of the libraries that are loaded by now.

        After each attempt botocore asks whether to try again; urllib3 makes the next ``Retry``, or raises.
        """
        self._count_if("botocore.endpoint", "Endpoint", "_needs_retry", _tries_again)
        self._count_if("urllib3.util.retry", "Retry", "increment", _is_no_redirect)
        statuses.hook()

    def _count_if(self, module: str, owner: str, method: str, retried: Callable[[Any, dict[str, Any]], bool]) -> None:
        if module in self._hooked or module not in sys.modules:
            return
        self._hooked.add(module)
        holder = getattr(sys.modules[module], owner, None)
        original = getattr(holder, method, None)
        if original is None:  # a version that works otherwise: its retries are not seen
            return

        @wraps(original)
        def counted(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if retried(result, kwargs):
                self._counts["retries"] += 1
            return result

        setattr(holder, method, counted)


def wait_of(frame: FrameType | None) -> Wait:
    """The thing that a request whose greenlet is parked there waits for.

    ``future``: work of which nobody has said that it has begun. ``aside``: an event, a queue, a sleep or a process of
    the user's, so that nothing here tells whether the endpoint has the request. A thread that has begun does one
    request at a time, so it counts as the network.
    """
    if waits_for_connection(frame):
        return "connection"
    if waits_for_lock(frame):
        return "lock"
    while frame is not None and _path(frame).endswith(THREADING_LOCKS):
        frame = frame.f_back
    if frame is None or _is_in_network(frame):
        return "network"
    if _is_at(frame, FUTURE):
        return "future" if getattr(frame.f_locals.get("self"), "_state", None) == "PENDING" else "network"
    return "aside"


def _is_in_network(frame: FrameType) -> bool:
    path = _path(frame)
    return path.endswith(NETWORK) or any(package in path for package in NETWORK_PACKAGES)


def standing_connections() -> int:
    """The number of this process's IP connections, also of clients that have no Python sockets, such as gRPC's.

    The kernel is asked of each descriptor: a Python socket made of one could change it, and the kernel's own table of
    connections, which is that of the whole host, takes long to read.
    """
    try:
        opened = [int(each.name) for each in Path("/dev/fd").iterdir()]
    except OSError:  # nobody may look: then there may be some
        return _OWN + 1
    address, length = ctypes.create_string_buffer(128), ctypes.c_uint()
    found = 0
    for descriptor in opened:
        length.value = len(address)
        if not _LIBC.getpeername(descriptor, address, ctypes.byref(length)):
            found += address.raw[_FAMILY_BYTE] in (AF_INET, AF_INET6)
    return found


def waits_for_connection(frame: FrameType | None) -> bool:
    """Tells whether a parked greenlet waits for a connection of a pool; a lock's own frames are skipped."""
    while frame is not None and frame.f_code.co_filename.endswith(LOCKS):
        frame = frame.f_back
    if frame is None:
        return False
    return any(_is_at(frame, place) for place in POOL_WAITS)


def waits_for_lock(frame: FrameType | None) -> bool:
    """Tells whether a parked greenlet stands before a lock, a semaphore or a full pool of greenlets.

    An event or a condition is no lock.
    """
    if frame is not None and _is_at(frame, FULL_GREENLETS):
        return True
    called = ""
    while frame is not None and _path(frame).endswith(THREADING_LOCKS):
        called, frame = frame.f_code.co_name, frame.f_back
    return called == "acquire"


def queued_work() -> int:
    """The work that executors have in their queues, which none of their threads or processes has begun."""
    of_threads, of_processes = (sys.modules.get(f"concurrent.futures.{kind}") for kind in ("thread", "process"))
    queues = list(dict(getattr(of_threads, "_threads_queues", {})).values())  # one for each thread of an executor
    queues += [thread.work_ids_queue for thread in list(getattr(of_processes, "_threads_wakeups", ()))]
    return sum(queue.qsize() for queue in {id(queue): queue for queue in queues}.values())


def _is_at(frame: FrameType, place: tuple[str, str]) -> bool:
    end, function = place
    return _path(frame).endswith(end) and frame.f_code.co_name == function


def _path(frame: FrameType) -> str:
    return frame.f_code.co_filename.replace(os.path.sep, "/")


def _tries_again(answer: Any, _: Any) -> bool:
    return bool(answer)


def _is_no_redirect(_: Any, arguments: dict[str, Any]) -> bool:
    response = arguments.get("response")
    return not (response is not None and response.get_redirect_location())
