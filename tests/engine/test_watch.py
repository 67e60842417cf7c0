"""What a worker sees of itself: who holds the event loop up, and what the client libraries do beneath invoke."""

from __future__ import annotations

import copy
import ctypes
import errno
import gc
import json
import logging
import os
import resource
import signal
import socket as system_socket
import subprocess
import sys
import traceback
from time import monotonic_ns
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import gevent
import gevent.thread
import pytest
import urllib3
from botocore.endpoint import Endpoint as BotocoreEndpoint
from gevent.monkey import get_original
from gevent.socket import AF_INET, AF_UNIX, SOCK_DGRAM, SOCK_STREAM, socket
from geventhttpclient.connectionpool import ConnectionPool
from urllib3.exceptions import ConnectTimeoutError, MaxRetryError
from urllib3.util.retry import Retry

from inference_benchmarker.engine.endpoint.factories_file import Endpoint
from inference_benchmarker.engine.worker import client_watch, loop_watch, statuses
from inference_benchmarker.engine.worker import watch as worker_watch
from inference_benchmarker.engine.worker.client_watch import LOCKS, MOST_LOOKS, POOL_WAITS, ClientWatch
from inference_benchmarker.engine.worker.in_flight import Slot
from inference_benchmarker.engine.worker.loop_watch import MOST_STACK, LoopWatch, Place, blamed
from inference_benchmarker.engine.worker.sessions import Sessions, invoke_sessions
from inference_benchmarker.engine.worker.watch import Watch
from inference_benchmarker.facts.client_use import Connections
from inference_benchmarker.plan.pacing import Arrival
from inference_benchmarker.records.batch_writer import BatchWriter
from inference_benchmarker.wave.spool.worker_state import WorkerState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import FrameType

# A thread of the system's looks at the test's own: that must be the one that gevent runs in.
pytestmark = pytest.mark.timeout(120, method="thread")

MS = 1_000_000
native_sleep = get_original("time", "sleep")


def start_native(target: Callable[[], None]) -> None:
    """A thread of the system's, whatever gevent has patched."""
    get_original("_thread", "start_new_thread")(target, ())


def sessions_of(endpoint: Endpoint, report: Callable[..., None] = lambda *_: None) -> Sessions:
    return invoke_sessions(endpoint, 1, report, BatchWriter())


def send(endpoint: Endpoint, report: Callable[..., None] = lambda *_: None) -> None:
    """Send one request in this greenlet; what it raises is raised."""
    sessions = sessions_of(endpoint, report)
    slot = Slot()
    tokens = iter([Arrival(0, 0)])
    slot.take = lambda: next(tokens, None)
    sessions.requests.slots.append(slot)
    sessions.serve(slot)
    if slot.failure is not None:
        raise slot.failure


def library(source: str, path: str = "/venv/lib/site-packages/library/api.py", **names: Any) -> Callable[..., Any]:
    """The function ``run`` of a module that stands in this file."""
    exec(compile(source, path, "exec"), names)  # noqa: S102 - the only way to a frame of a file that is not there
    run: Callable[..., Any] = names["run"]
    return run


CALLS_BACK = "def run(*given):\n    return function()"


class Looks:
    """Who is blamed while the user's code runs; asked from within."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str] | None] = []

    def __call__(self, above: int = 0) -> None:
        """Look at the calling frame, or at one ``above`` it."""
        frames = loop_watch.frames_of(sys._getframe(1))[above:]
        found = blamed(frames)
        self.found.append(None if found is None else (found[0], found[1].f_code.co_name))

    @property
    def one(self) -> tuple[str, str] | None:
        """The only answer."""
        (found,) = self.found
        return found


@pytest.fixture
def look() -> Looks:
    return Looks()


class TestBlamed:
    def test_invoke(self, look: Looks) -> None:
        def invoke(_: object) -> None:
            look()

        send(Endpoint(invoke=invoke, payloads=[1]))
        assert look.one == ("invoke", "invoke")

    def test_the_innermost_function_of_the_user(self, look: Looks) -> None:
        def parse() -> None:
            look()

        def invoke(_: object) -> None:
            parse()

        send(Endpoint(invoke=invoke, payloads=[1]))
        assert look.one == ("invoke", "parse")

    def test_the_piece_of_a_generator(self, look: Looks) -> None:
        def invoke(_: object) -> Iterator[str]:
            yield "a"
            look()
            yield "b"

        send(Endpoint(invoke=invoke, payloads=[1]))
        assert look.one == ("invoke", "invoke")

    def test_the_building_of_a_payload(self, look: Looks) -> None:
        def build() -> int:
            look()
            return 1

        send(Endpoint(invoke=lambda _: None, build=build))
        assert look.one == ("payload", "build")

    @pytest.mark.parametrize("payload", [{"payloads": [1]}, {"build": lambda: 1}], ids=["pre-computed", "built"])
    def test_its_label(self, look: Looks, payload: dict[str, Any]) -> None:
        def label(_: object) -> str:
            look()
            return "x"

        send(Endpoint(invoke=lambda _: None, label=label, **payload))
        assert look.one == ("payload", "label")

    def test_a_library_is_not_blamed_but_who_called_it(self, look: Looks) -> None:
        within = library(CALLS_BACK, function=lambda: look(above=1))

        def invoke(_: object) -> None:
            within()

        send(Endpoint(invoke=invoke, payloads=[1]))
        assert look.one == ("invoke", "invoke")

    def test_a_library_whose_statuses_are_heard_is_one(self, look: Looks, monkeypatch: pytest.MonkeyPatch) -> None:
        request = library("def run(self):\n    function()\n    return self", function=lambda: look(above=1))
        module = ModuleType("an_http_library")
        vars(module)["Client"] = type("Client", (), {"request": request, "status": 200})
        monkeypatch.setitem(sys.modules, module.__name__, module)
        statuses.hear(module.__name__, "Client", "request", lambda client, _: client.status)

        def invoke(_: object) -> None:
            vars(module)["Client"]().request()

        send(Endpoint(invoke=invoke, payloads=[1]))
        assert look.one == ("invoke", "invoke")

    @pytest.mark.parametrize("folder", ["site-packages", "dist-packages"])
    def test_where_all_of_it_is_a_library_its_entry_is(self, look: Looks, folder: str) -> None:
        path = f"/usr/lib/python3/{folder}/sdk/client.py"
        inner = library(CALLS_BACK, path, function=lambda: look(above=1))
        outer = library(
            "def run(*given):\n    return entry()\ndef entry():\n    return function()", path, function=inner
        )
        send(Endpoint(invoke=outer, payloads=[1]))
        assert look.one == ("invoke", "run")

    def test_the_standard_library_is_a_library(self, look: Looks) -> None:
        class Copied:
            def __deepcopy__(self, memo: object) -> None:
                look(above=1)  # copy.deepcopy

        def invoke(_: object) -> None:
            copy.deepcopy(Copied())

        send(Endpoint(invoke=invoke, payloads=[1]))
        assert look.one == ("invoke", "invoke")

    def test_a_folder_that_is_merely_named_like_one_is_the_users(self, look: Looks) -> None:
        mine = library(CALLS_BACK, "/home/me/my-site-packages.d/mine.py", function=lambda: look(above=1))
        send(Endpoint(invoke=mine, payloads=[1]))
        assert look.one == ("invoke", "run")

    def test_the_tool_itself_where_it_is_innermost(self, look: Looks) -> None:
        send(Endpoint(invoke=lambda _: look(above=1), payloads=[1]))
        assert look.one == ("tool", "attempt")

    def test_the_tool_for_what_it_does_beside_a_request(self, look: Looks) -> None:
        send(Endpoint(invoke=lambda _: None, payloads=[1]), lambda *_: look())
        assert look.one == ("tool", "_report")

    def test_a_locust_file_runs_as_invoke(self, look: Looks) -> None:
        def task() -> None:
            look()

        library(CALLS_BACK, loop_watch.LOCUST_FILE, function=task)()
        assert look.one == ("invoke", "task")

    def test_a_greenlet_that_the_user_started(self, look: Looks) -> None:
        def mine() -> None:
            look()

        gevent.spawn(mine).join()
        assert look.one == ("invoke", "mine")

    def test_nobody_while_our_callback_of_the_garbage_collector_runs(self, look: Looks) -> None:
        """It is called wherever memory is asked for, so in anybody's code; what is collected is not that code's."""
        collect = library(CALLS_BACK, loop_watch.WATCH_FILE, function=lambda: look(above=1))

        def invoke(_: object) -> None:
            collect()

        send(Endpoint(invoke=invoke, payloads=[1]))
        assert look.found == [None]

    def test_the_callback_that_is_registered_stands_in_that_file(self) -> None:
        assert worker_watch.Pauses.start.__code__.co_filename == loop_watch.WATCH_FILE

    def test_nobody_while_the_loop_waits(self, look: Looks) -> None:
        gevent.get_hub().loop.run_callback(lambda: look(above=1))
        gevent.sleep(0.001)
        assert look.found == [None]
        assert blamed([]) is None

    def test_a_callback_in_the_hub_is_its_owners(self, look: Looks) -> None:
        def mine() -> None:
            look()

        run_callback = gevent.get_hub().loop.run_callback
        run_callback(mine)
        run_callback(library(CALLS_BACK, function=lambda: look(above=1)))
        gevent.sleep(0.001)
        assert look.found == [("invoke", "mine"), ("tool", "run")]


STEP = 2 * MS


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopWatch]:
    """A watch that beats every 2 ms, so that a test need not wait; 1 ms is late, and looked at soon."""
    monkeypatch.setattr(loop_watch, "BEAT_NS", (STEP, STEP))
    monkeypatch.setattr(loop_watch, "LATE_NS", MS)
    monkeypatch.setattr(loop_watch, "LOOK_S", (0.001, 0.003))
    interval, threads = sys.getswitchinterval(), thread_count()
    watch = LoopWatch()
    yield watch
    watch.stop()
    until(lambda: thread_count() <= threads)
    sys.setswitchinterval(interval)


def some_beats(watch: LoopWatch, count: int = 3) -> None:
    """Let the loop run until there are so many more."""
    until = len(watch.delays) + count
    with gevent.Timeout(20):
        while len(watch.delays) < until:
            gevent.sleep(0.001)


def spin(milliseconds: int) -> None:
    end = monotonic_ns() + milliseconds * MS
    while monotonic_ns() < end:
        pass


LOOKING = ("_look_regularly", "look_on")


def looking() -> set[int]:
    """The threads that look at a loop; others come and go as they please."""
    stacks = {thread: traceback.walk_stack(frame) for thread, frame in sys._current_frames().items()}
    return {thread for thread, stack in stacks.items() if any(frame.f_code.co_name in LOOKING for frame, _ in stack)}


def thread_count() -> int:
    """How many look at a loop."""
    return len(looking())


def until(done: Callable[[], bool]) -> None:
    with gevent.Timeout(20):
        while not done():
            gevent.sleep(0.001)


class TestLoopWatch:
    def test_the_loop_is_asked_again_and_again(self, loop: LoopWatch) -> None:
        loop.start()
        some_beats(loop)
        assert all(delay >= 0 for delay in loop.delays)
        assert len(loop.delays) >= 3

    def test_every_instant_counts_that_passes_in_a_block(self, loop: LoopWatch) -> None:
        loop.due_ns = monotonic_ns() - 20 * MS
        loop.beat()
        assert loop.delays[0] >= 20_000
        assert len(loop.delays) >= 11
        assert {before - after for before, after in zip(loop.delays, loop.delays[1:], strict=False)} == {STEP // 1000}
        assert loop.delays[-1] < STEP // 1000
        assert loop.due_ns <= monotonic_ns() + STEP

    def test_the_instants_are_random(self) -> None:
        watch = LoopWatch()
        watch.due_ns = monotonic_ns() - 2000 * MS
        watch.beat()
        watch.stop()
        gaps = {before - after for before, after in zip(watch.delays, watch.delays[1:], strict=False)}
        least, most = (gap // 1000 for gap in loop_watch.BEAT_NS)
        assert len(gaps) > 10
        assert all(least <= gap <= most + 1 for gap in gaps)

    def test_what_blocks_it_is_found_by_the_thread(self, loop: LoopWatch) -> None:
        def invoke(_: object) -> None:
            spin(80)

        loop.start()
        some_beats(loop)
        loop.begin()
        send(Endpoint(invoke=invoke, payloads=[1]))
        some_beats(loop, 1)
        assert max(loop.delays) >= 77_000
        assert len(loop.delays) >= 38
        (place,) = [place for place in loop.places.values() if place.where.startswith("spin (test_watch.py:")]
        assert place.part == "invoke"
        assert place.longest_ns >= 77 * MS
        assert place.looks >= 2
        assert [entry.split()[0].rpartition(".")[2] for entry in place.stack[-3:]] == ["attempt", "invoke", "spin"]

    @pytest.mark.parametrize("call", ["usleep", "poll"])
    def test_a_blocking_call_in_c_is_named_and_not_broken_off(self, loop: LoopWatch, call: str) -> None:
        """Neither call is begun again after a signal: it returned early, and poll with EINTR."""
        libc = ctypes.CDLL(None, use_errno=True)
        answers: list[tuple[int, int, float]] = []

        def invoke(_: object) -> None:
            began = monotonic_ns()
            ctypes.set_errno(0)
            answer = libc.usleep(100_000) if call == "usleep" else libc.poll(None, 0, 100)
            answers.append((answer, ctypes.get_errno(), (monotonic_ns() - began) / 1e9))

        loop.start()
        some_beats(loop)
        loop.begin()
        send(Endpoint(invoke=invoke, payloads=[1]))
        some_beats(loop, 1)
        ((answer, number, took_s),) = answers
        assert (answer, number) == (0, 0)
        assert took_s >= 0.099
        worst = loop.worst()
        assert worst is not None
        assert (worst["part"], worst["where"].split()[0].rpartition(".")[2]) == ("invoke", "invoke")
        assert worst["longest_s"] >= 0.09

    def test_no_signal_is_taken(self, loop: LoopWatch) -> None:
        numbers = (signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGUSR1, signal.SIGUSR2)
        before = [signal.getsignal(number) for number in numbers]
        timers = (signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
        loop.start()
        some_beats(loop)
        spin(20)
        assert [signal.getsignal(number) for number in numbers] == before
        assert [signal.getitimer(timer) for timer in timers] == [(0, 0)] * 2

    def test_the_place_that_is_found_most_often_is_reported(self, loop: LoopWatch) -> None:
        def a() -> None:
            loop.look(sys._getframe())

        def b() -> None:
            loop.look(sys._getframe())

        assert loop.worst() is None
        for late_ms, seen in ((30, (a, a, a, b)), (50, (b, b)), (10, (a,)), (20, (a,))):
            loop.due_ns = monotonic_ns() - late_ms * MS
            for place in seen:
                place()
            loop.beat()
        worst = loop.worst()
        assert worst is not None
        assert worst["where"].split()[0].endswith("<locals>.a")
        assert (worst["part"], worst["share"]) == ("invoke", 5 / 8)
        assert worst["longest_s"] >= 0.03  # the block of 50 ms was b's
        (other,) = [place for place in loop.places.values() if place.where.split()[0].endswith(".b")]
        assert other.longest_ns >= 50 * MS

    def test_a_shorter_block_does_not_take_the_place_of_a_longer(self, loop: LoopWatch) -> None:
        for late_s in (1000, 1):
            loop.due_ns = monotonic_ns() - late_s * 1000 * MS
            loop.look(sys._getframe())
            loop.end_block(late_s * 1000 * MS)
        worst = loop.worst()
        assert worst is not None
        assert worst["longest_s"] == 1000
        assert worst["share"] == 1

    def test_who_runs_while_the_beat_is_in_time_is_nobodys_business(
        self, loop: LoopWatch, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looks: list[object] = []
        monkeypatch.setattr(loop, "look", looks.append)
        loop.start()
        loop._alarm.stop()
        loop.due_ns = monotonic_ns() + 3600 * 1000 * MS
        native_sleep(0.01)  # a look that was begun before is over
        looks.clear()
        spin(30)
        assert looks == []
        loop.due_ns = monotonic_ns()
        spin(60)
        assert looks

    def test_a_look_at_nothing_is_no_error(self, loop: LoopWatch) -> None:
        loop.due_ns = 0
        loop.look(None)
        assert loop.worst() is None

    def test_of_a_deep_stack_the_innermost_frames_are_kept(self, loop: LoopWatch) -> None:
        def deep(depth: int) -> None:
            if depth:
                deep(depth - 1)
            else:
                innermost()

        def innermost() -> None:
            loop.look(sys._getframe())

        loop.due_ns = monotonic_ns() - 10 * MS
        deep(300)
        loop.beat()
        worst = loop.worst()
        assert worst is not None
        assert len(worst["stack"]) == MOST_STACK
        assert ".innermost (test_watch.py:" in worst["stack"][-1]
        assert all(".deep (test_watch.py:" in entry for entry in worst["stack"][:-1])

    def test_the_warmup_is_forgotten_even_in_mid_block(self, loop: LoopWatch) -> None:
        loop.due_ns = monotonic_ns() - 10 * MS
        loop.look(sys._getframe())
        loop.delays.append(7)
        loop.begin()
        assert (loop.delays, loop.worst()) == ([], None)
        loop.beat()
        assert loop.worst() is None

    def test_the_looking_thread_gets_its_turn_soon(self, loop: LoopWatch) -> None:
        loop.start()
        assert sys.getswitchinterval() == pytest.approx(loop_watch.SWITCH_S)

    def test_stop_ends_the_beats_and_the_thread(self, loop: LoopWatch) -> None:
        before = looking()  # one of an earlier test may still end meanwhile
        loop.start()
        some_beats(loop)
        until(lambda: len(looking() - before) == 1)
        loop.stop()
        until(lambda: not looking() - before)
        loop.delays.clear()
        gevent.sleep(0.006)
        assert loop.delays == []
        spin(20)
        loop.stop()

    def test_stop_ends_the_thread_while_the_beat_is_late_too(self, loop: LoopWatch) -> None:
        before = thread_count()
        loop.start()
        some_beats(loop)
        spin(20)
        loop.stop()
        end = monotonic_ns() + 20_000 * MS
        while thread_count() > before:  # the loop never comes round
            assert monotonic_ns() < end
            native_sleep(0.001)

    def test_the_thread_looks_at_that_of_the_loop(self) -> None:
        """A watch belongs to the thread that made it, as its loop does."""
        found: list[Any] = []

        def elsewhere() -> None:
            found.append(LoopWatch().thread)

        identity = get_original("_thread", "get_ident")
        start_native(elsewhere)
        until(lambda: bool(found))
        assert found[0] != LoopWatch().thread == identity()

    def test_looks_beside_the_loops_own_work_never_raise(
        self, loop: LoopWatch, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One thread looks at ever new places without a pause, while this one reads and ends blocks."""
        raised: list[BaseException] = []
        going = True
        monkeypatch.setattr(sys, "unraisablehook", lambda given: raised.append(given.exc_value))
        frames = [
            library(f"import sys\n{'#' * 5}\n" + "\n" * n + "def run():\n    return sys._getframe()")()
            for n in range(400)
        ]

        def look_on() -> None:
            while going:
                for frame in frames:
                    try:
                        loop.look(frame)
                    except BaseException as error:
                        raised.append(error)
                        return

        loop.look(frames[0])
        before = thread_count()
        sys.setswitchinterval(1e-6)
        start_native(look_on)
        end, rounds, reported = monotonic_ns() + 700 * MS, 0, 0
        while monotonic_ns() < end:
            rounds += 1
            worst = loop.worst()
            if worst is not None:
                reported += 1
                assert 0 < worst["share"] <= 1
            if loop.block:
                loop.end_block(rounds)
        going = False
        until(lambda: thread_count() == before)
        assert raised == []
        assert rounds > 50
        assert reported


POOL_LOG = logging.getLogger("urllib3.connectionpool")


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put back what a ClientWatch hooks into for good."""
    for holder, names in (
        (socket, ("connect", "connect_ex")),
        (Retry, ("increment",)),
        (BotocoreEndpoint, ("_needs_retry",)),
        (POOL_LOG, ("warning",)),
    ):
        for name in names:
            monkeypatch.setattr(holder, name, getattr(holder, name))


@pytest.fixture
def client(hooks: None) -> ClientWatch:
    return ClientWatch()


@pytest.fixture
def listening() -> Iterator[tuple[str, int]]:
    """A port of this host that takes connections and says nothing."""
    with system_socket.create_server(("127.0.0.1", 0), backlog=16) as server:
        yield server.getsockname()


def test_facts_are_the_fields_of_connections(client: ClientWatch) -> None:
    names = ("opened", "discarded", "looked_at", "waiting", "locked", "aside", "retries")
    assert client.facts() == {**dict.fromkeys(names, 0), "clear_until_s": None, "seen": None}


class TestSockets:
    def test_each_connection_counts_once(self, client: ClientWatch, listening: tuple[str, int]) -> None:
        with socket(AF_INET, SOCK_STREAM) as one, socket(AF_INET, SOCK_STREAM) as other:
            one.connect(listening)
            assert client.facts()["opened"] == 1
            assert other.connect_ex(listening) == 0
        assert client.facts()["opened"] == 2
        client.begin()
        assert client.facts()["opened"] == 0

    def test_what_is_no_tcp_is_no_connection(
        self, client: ClientWatch, listening: tuple[str, int], tmp_path: Path
    ) -> None:
        path = os.path.relpath(tmp_path / "s")  # the address of such a socket is short
        with system_socket.socket(AF_UNIX) as server, socket(AF_UNIX, SOCK_STREAM) as local:
            server.bind(path)
            server.listen()
            local.connect(path)
        with socket(AF_INET, SOCK_DGRAM) as datagrams:
            datagrams.connect(listening)
        assert client.facts()["opened"] == 0

    def test_a_connection_that_is_refused_is_not_opened(self, client: ClientWatch) -> None:
        """By this host (a broadcast address: TCP to it is refused by the kernel), or by the other side."""
        with system_socket.socket() as free:
            free.bind(("127.0.0.1", 0))  # bound and not listening: nobody else gets it, and it refuses
            for address in (("255.255.255.255", 9), free.getsockname()):
                with socket(AF_INET, SOCK_STREAM) as one, pytest.raises(OSError, match=r"."):
                    one.connect(address)
                with socket(AF_INET, SOCK_STREAM) as one:
                    assert one.connect_ex(address) != 0
        assert client.facts()["opened"] == 0

    @pytest.mark.usefixtures("client")
    def test_what_is_no_connection_is_left_as_it_was(self) -> None:
        assert socket.__init__.__module__.startswith("gevent.")

    @pytest.mark.usefixtures("client")
    def test_the_hooked_functions_keep_their_names(self) -> None:
        assert (socket.connect.__name__, socket.connect_ex.__name__) == ("connect", "connect_ex")


class TestSeen:
    def test_a_process_that_opens_nothing_has_no_connection(
        self, client: ClientWatch, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(client_watch, "_OWN", client_watch.standing_connections())  # other tests' as well
        client.look([], 0.0)
        assert client.facts()["seen"] is False

    @pytest.mark.parametrize("kind", [socket, system_socket.socket], ids=["python", "native"])
    def test_a_connection_is_seen_for_good(
        self, client: ClientWatch, listening: tuple[str, int], kind: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also one of a client that has no Python sockets, which only the kernel knows."""
        monkeypatch.setattr(client_watch, "_OWN", client_watch.standing_connections())
        with kind(AF_INET, SOCK_STREAM) as one:
            one.connect(listening)
            client.look([], 0.0)
        client.begin()
        client.look([], 1.0)
        assert client.facts()["seen"] is True


class TestFullPool:
    def test_each_discarded_connection_counts_and_only_the_first_is_logged(
        self, client: ClientWatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        pool = urllib3.HTTPConnectionPool("127.0.0.1", 9, maxsize=1)
        for _ in range(3):
            pool._put_conn(pool._new_conn())
        assert client.facts()["discarded"] == 3
        assert sum("Connection pool is full" in record.getMessage() for record in caplog.records) == 1

    def test_a_user_who_silences_urllib3_does_not_silence_the_count(
        self, client: ClientWatch, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(POOL_LOG, "disabled", True)
        pool = urllib3.HTTPConnectionPool("127.0.0.1", 9, maxsize=1)
        for connection in [pool._get_conn(), pool._get_conn()]:
            pool._put_conn(connection)
        assert client.facts()["discarded"] == 1

    def test_a_pool_that_has_room_discards_nothing(self, client: ClientWatch) -> None:
        pool = urllib3.HTTPConnectionPool("127.0.0.1", 9, maxsize=2)
        for connection in [pool._get_conn(), pool._get_conn()]:
            pool._put_conn(connection)
        assert client.facts()["discarded"] == 0

    def test_other_messages_pass(self, client: ClientWatch, caplog: pytest.LogCaptureFixture) -> None:
        for _ in range(2):
            POOL_LOG.warning("Retrying (%r) after connection broken", 1)
        assert len(caplog.records) == 2
        assert client.facts()["discarded"] == 0


def response(status: int, **headers: str) -> urllib3.HTTPResponse:
    return urllib3.HTTPResponse(b"", headers=headers, status=status)


class TestRetries:
    def test_what_urllib3_tries_again_counts(self, client: ClientWatch) -> None:
        client.hook()
        again = Retry(3).increment("GET", "/", response=response(503))
        assert again.increment("GET", "/", error=ConnectTimeoutError()).total == 1
        assert client.facts()["retries"] == 2

    def test_a_redirect_is_no_retry(self, client: ClientWatch) -> None:
        client.hook()
        Retry(3).increment("GET", "/", response=response(302, location="/elsewhere"))
        assert client.facts()["retries"] == 0

    def test_giving_up_is_no_retry(self, client: ClientWatch) -> None:
        client.hook()
        with pytest.raises(MaxRetryError):
            Retry(0).increment("GET", "/", response=response(503))
        assert client.facts()["retries"] == 0

    def test_each_counts_once_however_often_the_libraries_are_looked_for(self, client: ClientWatch) -> None:
        for _ in range(3):
            client.look([], 0.5)
        Retry(3).increment("GET", "/", response=response(503))
        assert client.facts()["retries"] == 1

    @pytest.mark.parametrize(("answer", "retries"), [(0, 1), (0.001, 1), (None, 0), (False, 0)])
    def test_what_botocore_tries_again_counts(self, client: ClientWatch, answer: float | None, retries: int) -> None:
        """``_needs_retry`` asks the handlers, which answer with the pause before the next attempt."""
        client.hook()
        endpoint = BotocoreEndpoint.__new__(BotocoreEndpoint)
        endpoint._event_emitter = SimpleNamespace(emit=lambda _, **__: [(None, answer)])
        service = SimpleNamespace(service_id=SimpleNamespace(hyphenize=lambda: "s"))
        operation = SimpleNamespace(service_model=service, name="Invoke")
        assert endpoint._needs_retry(1, operation, {}) is bool(retries)
        assert client.facts()["retries"] == retries

    def test_a_library_that_is_loaded_later_is_hooked_then(
        self, client: ClientWatch, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Later:
            def _needs_retry(self, answer: object) -> object:
                return answer

        monkeypatch.delitem(sys.modules, "botocore.endpoint")
        client.hook()
        module = ModuleType("botocore.endpoint")
        module.Endpoint = Later  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "botocore.endpoint", module)
        client.hook()
        assert [Later()._needs_retry(answer) for answer in (True, False, True)] == [True, False, True]
        assert client.facts()["retries"] == 2

    @pytest.mark.parametrize("content", [{}, {"Endpoint": object}])
    def test_a_version_that_works_otherwise_is_left_alone(
        self, client: ClientWatch, monkeypatch: pytest.MonkeyPatch, content: dict[str, Any]
    ) -> None:
        module = ModuleType("botocore.endpoint")
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, "botocore.endpoint", module)
        client.hook()
        assert client.facts()["retries"] == 0


def frame_of(target: Callable[[], Any]) -> FrameType | None:
    """Where a greenlet is parked that runs this."""
    greenlet = gevent.spawn(target)
    gevent.sleep(0.001)
    frame: FrameType | None = greenlet.gr_frame
    assert not greenlet.dead
    greenlet.kill(block=False)
    return frame


def parked_in(path: str, name: str, wait: Callable[[], Any]) -> Callable[[], Any]:
    source = f"def {name}():\n    wait()\ndef run():\n    {name}()"
    return library(source, path, wait=wait)


def nap() -> None:
    gevent.sleep(60)


@pytest.mark.parametrize(
    ("calls", "is_lock"),
    [
        (["mine.py invoke", "gevent/thread.py acquire"], True),
        (["mine.py invoke", "threading.py acquire", "gevent/thread.py acquire"], True),
        (["mine.py invoke", "threading.py acquire", "threading.py wait", "gevent/thread.py acquire"], True),
        (["mine.py invoke", "threading.py wait", "gevent/thread.py acquire"], False),
        (["mine.py invoke", "concurrent/futures/_base.py result", "threading.py wait"], False),
        (["mine.py acquire"], False),
        ([], False),
    ],
)
def test_a_lock_or_a_semaphore_is_waited_for_and_an_event_is_no_lock(calls: list[str], is_lock: bool) -> None:
    frame: Any = None
    for call in calls:
        path, name = call.split()
        code = SimpleNamespace(co_filename=f"/lib/{path}", co_name=name)
        frame = SimpleNamespace(f_code=code, f_back=frame)
    assert client_watch.waits_for_lock(frame) == is_lock


WAITS = """
from gevent import monkey; monkey.patch_all()
import asyncio, gevent, os, queue, select, socket, subprocess, threading, time, urllib.request
import gevent.event, gevent.lock, gevent.pool, gevent.queue
from concurrent.futures import ThreadPoolExecutor
from gevent import ssl
from inference_benchmarker.clients.http import HttpClient
from inference_benchmarker.engine.worker.client_watch import wait_of

silent = socket.create_server(("127.0.0.1", 0))
url = "http://127.0.0.1:%d/" % silent.getsockname()[1]
one, _ = socket.socketpair()
threads, greenlets = ThreadPoolExecutor(1), gevent.pool.Pool(1)
greenlets.spawn(gevent.sleep, 60)
loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()

def handshake():
    ssl.create_default_context().wrap_socket(socket.create_connection(silent.getsockname()), server_hostname="x")

waits = {
    "network": [
        lambda: HttpClient(url).post(b"{}"), lambda: urllib.request.urlopen(url), lambda: one.recv(1), handshake,
        lambda: select.select([one], [], []),
        lambda: threads.submit(time.sleep, 60).result(),
    ],
    "lock": [lambda: threading.Semaphore(0).acquire(), lambda: greenlets.spawn(print)],
    "future": [
        lambda: threads.submit(time.sleep, 60).result(),
        lambda: asyncio.run_coroutine_threadsafe(asyncio.sleep(60), loop).result(),
    ],
    "aside": [
        lambda: threading.Event().wait(), lambda: queue.Queue().get(), lambda: time.sleep(60),
        lambda: subprocess.run(["sleep", "10"]), lambda: gevent.lock.Semaphore(0).acquire(),
        lambda: gevent.queue.Queue().get(), lambda: threading.Thread(target=time.sleep, args=(60,)).run(),
    ],
}
parked = {expected: [gevent.spawn(run) for run in runs] for expected, runs in waits.items()}
gevent.sleep(0.5)
for expected, them in parked.items():
    for number, greenlet in enumerate(them):
        if greenlet.dead or wait_of(greenlet.gr_frame) != expected:
            print(expected, number, greenlet, None if greenlet.dead else wait_of(greenlet.gr_frame))
print("all", flush=True)
os._exit(0)
"""


def test_only_a_wait_for_the_network_is_known_to_be_the_endpoints() -> None:
    """In a process of its own, because gevent's patches are for good."""
    done = subprocess.run([sys.executable, "-c", WAITS], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["all"], done.stdout + done.stderr


def test_work_that_an_executor_has_not_begun_waits_in_this_client_and_a_coroutine_does_not() -> None:
    """In a process of its own, because gevent's patches are for good."""
    script = """
from gevent import monkey; monkey.patch_all()
import asyncio, gevent, os, threading, time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from inference_benchmarker.engine.worker.client_watch import ClientWatch

def locked(*runs):
    watch, flying = ClientWatch(), [gevent.spawn(run) for run in runs]
    gevent.sleep(0.2)
    watch.look([SimpleNamespace(greenlet=each, arrival=1) for each in flying], 1.0)
    print(watch.facts()["looked_at"], watch.facts()["locked"], watch.facts()["aside"], flush=True)

class Bridge:
    def result(self):
        return asyncio.run_coroutine_threadsafe(asyncio.sleep(60), loop).result()

loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()
executor = ThreadPoolExecutor(2)
locked(*[Bridge().result] * 5)
locked(*[lambda: executor.submit(time.sleep, 60).result()] * 5)
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["5", "0", "5", "5", "3", "0"], done.stderr


class TestWaitsForConnection:
    @pytest.mark.parametrize(("path", "name"), POOL_WAITS)
    @pytest.mark.parametrize("lock", [None, *LOCKS])
    def test_a_queue_for_a_connection_whatever_the_lock(self, path: str, name: str, lock: str | None) -> None:
        lock_wait = gevent.lock.Semaphore(0).acquire
        wait = lock_wait if lock is None else parked_in(f"/usr/lib/python3/{lock}", "acquire", lock_wait)
        frame = frame_of(parked_in(f"/venv/site-packages/{path}", name, wait))
        assert client_watch.waits_for_connection(frame)

    @pytest.mark.parametrize(
        ("path", "name"),
        [("urllib3/connectionpool.py", "urlopen"), ("urllib3/response.py", "_get_conn"), ("mine.py", "get_socket")],
    )
    def test_another_wait_is_none(self, path: str, name: str) -> None:
        lock_wait = gevent.lock.Semaphore(0).acquire
        assert not client_watch.waits_for_connection(frame_of(parked_in(f"/venv/{path}", name, lock_wait)))

    def test_a_wait_beneath_the_pool_is_for_the_network(self) -> None:
        inner = parked_in("/venv/urllib3/connection.py", "connect", nap)
        frame = frame_of(parked_in("/venv/urllib3/connectionpool.py", "_get_conn", inner))
        assert not client_watch.waits_for_connection(frame)

    def test_a_greenlet_that_is_over_waits_for_nothing(self) -> None:
        assert not client_watch.waits_for_connection(None)

    def test_a_lock_of_the_users_own_is_no_pool(self) -> None:
        assert not client_watch.waits_for_connection(frame_of(parked_in("/usr/lib/queue.py", "get", nap)))

    def test_geventhttpclients_pool(self, listening: tuple[str, int]) -> None:
        pool = ConnectionPool(*listening, *listening, size=1)
        held = pool.get_socket()
        assert client_watch.waits_for_connection(frame_of(pool.get_socket))
        assert not client_watch.waits_for_connection(frame_of(lambda: held.recv(1)))
        gevent.sleep(0)  # the readers are gone
        held.close()

    def test_urllib3s_pool_under_gevents_patches(self, listening: tuple[str, int]) -> None:
        """In a process of its own, because the patches are for good."""
        script = f"""
from gevent import monkey; monkey.patch_all()
import gevent, urllib3
from inference_benchmarker.engine.worker.client_watch import waits_for_connection

pool = urllib3.HTTPConnectionPool(*{listening!r}, maxsize=1, block=True)
in_network = gevent.spawn(pool.urlopen, "GET", "/")
with gevent.Timeout(20):
    while pool.num_connections == 0:
        gevent.sleep(0.001)
in_queue = gevent.spawn(pool.urlopen, "GET", "/")
gevent.sleep(0.01)
print(waits_for_connection(in_network.gr_frame), waits_for_connection(in_queue.gr_frame))
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
        assert done.stdout.split() == ["False", "True"], done.stderr


def slot_at(frame: FrameType | None, *, idle: bool = False) -> Slot:
    slot = Slot()
    slot.greenlet = SimpleNamespace(gr_frame=frame)
    slot.arrival = None if idle else Arrival(0, 0)
    return slot


class TestLook:
    def test_requests_in_flight_are_looked_at(self, client: ClientWatch) -> None:
        path, name = POOL_WAITS[0]
        waiting = frame_of(parked_in(path, name, gevent.lock.Semaphore(0).acquire))
        client.look([slot_at(waiting), slot_at(frame_of(nap)), slot_at(None), slot_at(waiting, idle=True)], 1.0)
        assert (client.facts()["looked_at"], client.facts()["waiting"]) == (3, 1)

    def test_those_before_a_lock_are_counted(self, client: ClientWatch) -> None:
        lock = gevent.thread.allocate_lock()
        lock.acquire()
        client.begin()
        client.look([slot_at(frame_of(lock.acquire)), slot_at(frame_of(nap))], 1.0)
        assert (client.facts()["looked_at"], client.facts()["locked"]) == (2, 1)
        assert client.facts()["clear_until_s"] == 0.0

    def test_of_many_a_sample_is(self, client: ClientWatch) -> None:
        client.look([slot_at(None) for _ in range(MOST_LOOKS)], 0.5)
        assert client.facts()["looked_at"] == MOST_LOOKS
        client.look([slot_at(None) for _ in range(10 * MOST_LOOKS)], 1.0)
        assert client.facts()["looked_at"] == 2 * MOST_LOOKS

    def test_until_when_nobody_waited_is_kept(self, client: ClientWatch) -> None:
        waiting = slot_at(
            frame_of(parked_in("/venv/urllib3/connectionpool.py", "_get_conn", gevent.lock.Semaphore(0).acquire))
        )
        client.look([waiting], -0.5)
        client.begin()
        assert client.facts()["clear_until_s"] is None
        for at, slots in ((0.5, []), (1.0, [slot_at(None)]), (1.5, [waiting]), (2.0, []), (2.5, [waiting])):
            client.look(slots, at)
        assert client.facts()["clear_until_s"] == 1.0

    def test_a_pool_that_was_full_at_the_first_look_may_always_have_been(self, client: ClientWatch) -> None:
        client.begin()
        client.look(
            [
                slot_at(
                    frame_of(
                        parked_in("/venv/urllib3/connectionpool.py", "_get_conn", gevent.lock.Semaphore(0).acquire)
                    )
                )
            ],
            0.5,
        )
        assert client.facts()["clear_until_s"] == 0.0


@pytest.fixture
def watch(hooks: None, loop: LoopWatch) -> Iterator[Watch]:
    """A worker's whole watch; the process is as before afterwards."""
    limits, callbacks = resource.getrlimit(resource.RLIMIT_NOFILE), list(gc.callbacks)
    made = Watch()
    yield made
    made.stop()
    gc.callbacks[:] = callbacks
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def facts_of(watch: Watch, *, sending: bool) -> dict[str, Any]:
    """What the watch tells beside requests of which none was sent."""
    return watch.facts(sessions_of(Endpoint(invoke=lambda _: None, payloads=[1])).requests, sending=sending)


def some_of(watch: Watch) -> None:
    some_beats(watch._loop)


class TestWatch:
    def test_before_the_window_it_tells_of_no_delay_and_no_share(self, watch: Watch) -> None:
        watch.start()
        some_of(watch)
        facts = facts_of(watch, sending=True)
        assert facts["delays_us"] == []
        assert "cpu_share" not in facts

    def test_its_facts_are_read_from_the_spool(self, watch: Watch) -> None:
        watch.start()
        watch.begin()
        some_of(watch)
        spin(2)
        facts = facts_of(watch, sending=True)
        delays = facts.pop("delays_us")
        state = WorkerState(use=facts)
        state.delays_us.add(delays)
        use = state.worker_use
        assert use.loop_delay is not None
        assert use.loop_delay.count == len(delays) >= 3
        assert use.cpu_share is not None
        assert 0 < use.cpu_share <= 1.1
        assert use.cpu_s >= 0.001
        assert use.max_rss_bytes > 10 << 20
        assert 0 < use.descriptors < use.descriptor_limit

    def test_slots_and_refusals_are_those_of_the_requests(self, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(client_watch, "_OWN", client_watch.standing_connections())  # other tests' as well
        requests = sessions_of(Endpoint(invoke=lambda _: None, payloads=[1])).requests
        requests.slots += [slot_at(None), slot_at(frame_of(nap)), slot_at(None, idle=True)]
        requests.refused.update({"EMFILE": 3})
        connections = watch.facts(requests, sending=True)["connections"]
        assert connections == {
            "opened": 0,
            "discarded": 0,
            "looked_at": 2,
            "waiting": 0,
            "clear_until_s": None,
            "locked": 0,
            "aside": 1,
            "retries": 0,
            "refused": {"EMFILE": 3},
            "seen": False,
        }
        fields = json.loads(json.dumps(connections))
        requests.refused["EMFILE"] += 1
        assert connections == fields, "a report once made does not change"
        assert Connections(**fields).refused == {"EMFILE": 3}

    def test_a_delay_is_reported_once(self, watch: Watch) -> None:
        watch.start()
        watch.begin()
        some_of(watch)
        delays = facts_of(watch, sending=True)["delays_us"]
        assert delays
        assert facts_of(watch, sending=True)["delays_us"][: len(delays)] == delays, "no report has them yet"
        watch.mark_reported()
        assert facts_of(watch, sending=True)["delays_us"] == []

    def test_shares_and_delays_are_of_the_time_it_sent(self, watch: Watch) -> None:
        watch.start()
        watch.begin()
        spin(2)
        while_sending = facts_of(watch, sending=True)["cpu_share"]
        some_of(watch)
        draining = facts_of(watch, sending=False)
        assert (draining["cpu_share"], draining["delays_us"]) == (while_sending, [])

    def test_a_wave_that_is_over_before_its_first_report_still_has_both(self, watch: Watch) -> None:
        watch.start()
        watch.begin()
        some_of(watch)
        facts = facts_of(watch, sending=False)
        assert facts["delays_us"]
        assert facts["cpu_share"] >= 0

    def test_collections_since_the_window_began_are_counted(self, watch: Watch) -> None:
        watch.start()
        gc.collect()
        watch.begin()
        before = facts_of(watch, sending=True)["collections"]["pauses"]
        gc.collect()
        gc.collect()
        after = facts_of(watch, sending=True)["collections"]
        assert after["pauses"] >= before + 2
        assert 0 < after["longest_s"] <= after["total_s"]

    def test_descriptors_are_the_most_there_were(self, watch: Watch) -> None:
        opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(20)]
        most = facts_of(watch, sending=True)["descriptors"]
        for descriptor in opened:
            os.close(descriptor)
        assert most == max(opened) + 1
        assert facts_of(watch, sending=True)["descriptors"] == most

    def test_where_none_is_free_all_are_open(self, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object) -> int:
            raise OSError(errno.EMFILE, "Too many open files")

        monkeypatch.setattr(os, "open", fail)
        facts = facts_of(watch, sending=True)
        assert facts["descriptors"] == facts["descriptor_limit"]

    def test_a_kernel_that_does_not_tell_of_starvation_is_taken_at_that(
        self, watch: Watch, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(worker_watch, "SCHEDSTAT", tmp_path / "none")
        watch.begin()
        facts = facts_of(watch, sending=True)
        assert "cpu_share" in facts
        assert "starved_share" not in facts

    def test_starvation_is_the_share_of_waiting_for_a_core(
        self, watch: Watch, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        stat = tmp_path / "schedstat"
        monkeypatch.setattr(worker_watch, "SCHEDSTAT", stat)
        stat.write_text("5 1000000000 7\n")
        watch.begin()
        assert facts_of(watch, sending=True)["starved_share"] == 0
        stat.write_text("5 3000000000 7\n")
        assert facts_of(watch, sending=True)["starved_share"] > 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a quirk of Linux")
def test_the_largest_memory_is_not_the_parents() -> None:
    """Getrusage's maximum survives exec, so a large parent would show as a large worker."""
    script = """
import subprocess, sys
ballast = bytearray(300 << 20)
ballast[::4096] = b"x" * len(ballast[::4096])
subprocess.run([sys.executable, "-c", sys.argv[1]], check=True)
"""
    text = "from inference_benchmarker.engine.worker.watch import max_rss_bytes; print(max_rss_bytes())"
    done = subprocess.run([sys.executable, "-c", script, text], capture_output=True, text=True, timeout=60, check=True)
    assert 10 << 20 < int(done.stdout) < 250 << 20


def test_a_place_that_is_just_being_noted_is_not_reported(loop: LoopWatch) -> None:
    loop.places["f", 1] = Place("invoke", "x")
    assert loop.worst() is None
