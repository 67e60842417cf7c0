"""The primary's line to the workers: Locust's runner, on a socket that hears only those that have a key."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import gevent
from locust.env import Environment
from locust.exception import RPCError
from locust.stats import stats_history

from inference_benchmarker.engine.locust.runtime import WaveUser, options
from inference_benchmarker.engine.locust.sockets import ListenError, PrimarySocket, Visitors, listen_with
from inference_benchmarker.engine.primary.locust_memory_limits import keep_small

if TYPE_CHECKING:
    from collections.abc import Callable

    from locust.event import Events
    from locust.runners import MasterRunner

    from inference_benchmarker.engine.locust.zmq_keys import PrimaryKeys
    from inference_benchmarker.engine.primary.launcher_channel import Parent
    from inference_benchmarker.engine.primary.logbook import Logbook
    from inference_benchmarker.engine.primary.shape import TokenBucketShape
    from inference_benchmarker.plan.plan import WavePlan

USERS_S = 30.0  # Locust's own users have nothing to load: they are there at once

logger = logging.getLogger("inference_benchmarker.engine.primary")


class Transport:
    """Hears the workers and speaks to them; counts who else comes to its port. ``also``: the address of theirs, too.

    Raises SystemExit where the port cannot be had; the parent gets the reason.
    """

    def __init__(
        self,
        plan: WavePlan,
        keys: PrimaryKeys,
        events: Events,
        *,
        shape: TokenBucketShape,
        parent: Parent,
        logbook: Logbook,
        also: str | None = None,
    ) -> None:
        self._plan = plan
        self._shape = shape
        self._parent = parent
        self._logbook = logbook
        self._foreign_reported = 0
        self._listeners: dict[str, Callable[[Any], None]] = {}
        listen_with(keys, self._tell_of_visitors, also)
        self.environment = Environment(
            user_classes=[WaveUser],
            events=events,
            shape_class=shape,
            parsed_options=options(plan.url),
            host=plan.url,
        )
        self._runner = self._make_runner()

    @property
    def port(self) -> int:
        """The port that the workers connect to."""
        return int(self._runner.server.port)

    @property
    def also(self) -> str | None:
        """The address that workers on other hosts connect to."""
        return None if self._runner.server.also is None else str(self._runner.server.also)

    def hear(self, message: str, listener: Callable[[Any], None]) -> None:
        """Call the listener for each message of this kind; Locust, which looks at all its workers then, gets none."""
        self._listeners[message] = listener

    def send(self, message: str, data: dict[str, Any], worker: str | None = None) -> None:
        """Send a message to one worker, by its name in Locust, or to all."""
        self._runner.send_message(message, data, worker)

    def start_users(self, is_over: Callable[[], bool]) -> None:
        """Let Locust bring up its one user a worker, and wait for them, or until one worker is gone."""
        self._runner.start_shape()
        with gevent.Timeout(USERS_S, False):
            while not self._runner.spawning_completed and not is_over():
                gevent.sleep(0.005)
        if self._plan.ui:  # what its charts show
            gevent.spawn(stats_history, self._runner)
        gevent.spawn(keep_small, self._runner.stats, gevent.sleep)

    def note_visitors(self) -> None:
        """Write down how many came that were no workers."""
        self._logbook.note(event="foreign_connections", count=self._runner.server.visitors.foreign)

    def end(self) -> None:
        """Let Locust end its test."""
        self._shape.end()
        self._runner.greenlet.join(timeout=5)

    def _make_runner(self) -> MasterRunner:
        try:
            runner = self.environment.create_master_runner("127.0.0.1", self._plan.port or 0)
        except ListenError as error:
            self._parent.tell("failed", problems=[_listen_problem(error)], armed=False)
            raise SystemExit(2) from None
        except RPCError as error:
            self._parent.tell("failed", problems=[_port_problem(self._plan.port, error)], armed=False)
            raise SystemExit(2) from None
        assert isinstance(runner.server, PrimarySocket), "Locust made a socket of its own, without keys"
        runner.handle_message = self._surviving(runner.handle_message)
        return runner

    def _surviving(self, handle: Callable[[str, Any], None]) -> Callable[[str, Any], None]:
        """Ours and Locust's handling of a message; one that cannot be taken would end the listener, and the wave."""

        def handle_message(client_id: str, msg: Any) -> None:
            try:
                if listener := self._listeners.get(msg.type):
                    listener(msg)
                else:
                    handle(client_id, msg)
            except Exception:
                logger.exception("a message of worker %s cannot be handled", msg.sender)

        return handle_message

    def _tell_of_visitors(self, visitors: Visitors) -> None:
        """Tell of the first foreign connection, the tenth, the hundredth; how many there were in the end is noted."""
        if visitors.foreign >= max(1, 10 * self._foreign_reported):
            self._foreign_reported = visitors.foreign
            self._parent.tell("foreign_connections", count=visitors.foreign, port=visitors.port)
            if self._logbook.is_begun:
                self.note_visitors()


def _listen_problem(error: ListenError) -> dict[str, str]:
    """Why the primary cannot listen for other hosts, and what to try."""
    address = error.address.removeprefix("tcp://").removesuffix(":0")
    return {"message": f"--listen {address} cannot be used ({error}).", "hint": "Give an address of this host."}


def _port_problem(port: int | None, error: RPCError) -> dict[str, str]:
    """Why the primary cannot listen, and what to try."""
    if port is None:
        return {"message": f"The primary finds no free port on 127.0.0.1 ({error}).", "hint": ""}
    hint = "Give another port, or none to use any free one."
    return {"message": f"--port {port} cannot be used ({error}).", "hint": hint}
