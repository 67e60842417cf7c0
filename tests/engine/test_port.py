"""The primary's port: whoever is not one of the wave's own processes is counted, reported and changes nothing."""

from __future__ import annotations

import json
import socket
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import msgpack
import pytest
import zmq
from zmq.utils import z85

from inference_benchmarker.engine.locust.zmq_keys import KeyPair, PrimaryKeys, WorkerKeys, make_keys
from tests.strangers import JUNK, RAW, flood, forged_batches, port_of, raw_connection, say, stray_locust_worker

if TYPE_CHECKING:
    from tests.bench import Bench

pytestmark = pytest.mark.process

SERVICE_S = 0.05

# A factories file that takes as long to load as its tester wants.
HELD_UP = """
import os, time
from sender import post


def invoke_factory():
    open("loading", "w").close()
    while not os.path.exists("go on"):
        time.sleep(0.02)
    return post


def payload_factory():
    return {"pre_computed": True, "input": list(range(10_000))}
"""


# A worker whose own code speaks to the primary: as itself, in the other worker's name, and in nobody's.
BABBLER = """
import locust.runners, msgpack
from sender import post

connect, runners = locust.runners.WorkerRunner.connect_to_master, []
locust.runners.WorkerRunner.connect_to_master = lambda runner: runners.append(runner) or connect(runner)


def babble():
    runner = runners[0]
    own, say = runner.client_id, runner.client.socket.send
    for message in (5, (), ("quit", None, own), ("heartbeat", {}, own), ("heartbeat", None, own), ("stats", 5, own),
                    ("locustfile", {}, own), ("exception", None, own), (["x"], None, own), ("wave_ready", None, own),
                    ("wave_batch", b"junk", own), ("wave_batch", forged(), own), ("client_stopped", None, "another")):
        say(msgpack.packb(message))
    say(b"")
    say(bytes([0xC1, 0xC1]))


def forged():
    from inference_benchmarker.records.batch_writer import BatchWriter
    from inference_benchmarker.records.record import Ledger
    ledger = Ledger(scheduled=5, sent=5, ok=5).to_json()
    return BatchWriter().take({"worker": 0, "sequence": 0, "at": 1, "final": True, "ledger": ledger})


def invoke_factory():
    def invoke(payload):
        if payload == 1:
            babble()
        return post(payload)
    return invoke


def payload_factory():
    return {"pre_computed": True, "input": list(range(10_000))}
"""


def test_a_worker_speaks_for_itself_alone_and_what_it_should_not_say_does_no_harm(bench: Bench) -> None:
    with bench.endpoint(servers=20, service_s=0.01) as endpoint:
        wave = bench.run(
            *("--client-rps", 100, "--obs-time", "1.2", "--workers", 2), factories=BABBLER, target=endpoint
        )
        arrivals = len(endpoint.arrivals()["id"])
    assert wave.exit_code == 0, wave.err
    wave.check_books("100")
    assert wave.ledger["ok"] == arrivals == 120, wave.summary["errors"]
    assert wave.findings == {}
    log = (wave.folder / "logs" / "primary.log").read_text()
    assert "worker 1 sent a batch of worker 0" in log
    assert "'quit' of" in log


def test_strangers_at_the_port_are_counted_and_reported_and_change_nothing(bench: Bench) -> None:
    """Each of these once made the wave hang for ever, lose its records, or report requests that nobody sent."""
    folder = bench.folder()
    with bench.endpoint(servers=20, service_s=SERVICE_S) as endpoint, zmq.Context() as context, ExitStack() as attacks:
        running = bench.start(
            *("--client-rps", 80, "--obs-time", "1.5", "--workers", 2, "--drain-timeout", 5),
            factories=HELD_UP,
            target=endpoint,
            folder=folder,
        )
        port = port_of(running)
        running.wait_for((folder / "loading").exists, "the loading")
        ready, leaving = (
            msgpack.packb(("client_ready", "2.47.0", "stranger")),
            msgpack.packb(("quit", None, "stranger")),
        )
        attacks.callback(context.destroy, linger=0)
        attacks.enter_context(stray_locust_worker(folder, port))
        running.wait_for(lambda: f"Connections of other programs to port {port}: 1 so far" in running.err, "the stray")
        say(context, port, ready, leaving)
        (folder / "go on").touch()
        running.wait_for_arrivals(endpoint, 5)
        public, secret = zmq.curve_keypair()
        say(context, port, *JUNK, *forged_batches(24))
        say(context, port, *JUNK, curve_publickey=public, curve_secretkey=secret, curve_serverkey=public)
        for data in RAW:
            attacks.enter_context(raw_connection(port, data))
        wave = running.finish()
        log = endpoint.arrivals()
    assert wave.exit_code == 0, wave.err
    wave.check_books("80")
    assert wave.ledger["ok"] == len(log["id"]) == 120
    assert min(row["done"] - row["sent"] for row in wave.rows) >= SERVICE_S * 1e9
    assert wave.findings == {"foreign_connections": "warning"}
    assert wave.summary["foreign_connections"] >= 8
    assert "connections of other programs" in wave.out


def test_thousands_of_connections_keep_no_worker_out_and_take_nothing_that_the_wave_needs(bench: Bench) -> None:
    folder = bench.folder()
    with bench.endpoint(service="none") as endpoint:
        running = bench.start(
            *("--client-rps", 60, "--obs-time", 1, "--workers", 2, "--sample-client-hw"),
            factories=HELD_UP,
            target=endpoint,
            folder=folder,
        )
        port = port_of(running)
        running.wait_for((folder / "loading").exists, "the loading")
        with flood(port):
            (folder / "go on").touch()
            wave = running.finish()
    assert wave.exit_code == 0, wave.err
    wave.check_books("60")
    assert wave.ledger["ok"] == 60
    assert wave.summary["foreign_connections"] >= 1_000
    assert f"Connections of other programs to port {port}: 1,0" in wave.err


def test_a_port_that_is_taken_is_bad_input_and_leaves_nothing_behind(bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        running = bench.start("--client-rps", 30, "--obs-time", 1, "--port", port)
        wave = running.finish()
    assert wave.code == 2
    assert wave.err.endswith(
        f"benchmark: --port {port} cannot be used (Address already in use). "
        "Give another port, or none to use any free one.\n"
    )
    assert running.run_dirs() == []


def speak(client_keys: WorkerKeys | None, server_keys: PrimaryKeys | None, wait_s: float) -> list[Any]:
    """What a server hears of a client, and as whose; each is protected by the keys it has."""
    with zmq.Context() as context:
        gate, server, client = (context.socket(kind) for kind in (zmq.REP, zmq.ROUTER, zmq.DEALER))
        gate.bind("inproc://zeromq.zap.01")
        for end, keys in ((server, server_keys), (client, client_keys)):
            if keys is not None:
                keys.protect(end)
        client.connect(f"tcp://127.0.0.1:{server.bind_to_random_port('tcp://127.0.0.1')}")
        client.send(SECRET)
        deadline = time.monotonic() + wait_s
        try:
            while time.monotonic() < deadline:
                if gate.poll(10):
                    gate.send_multipart(KEYS.answer(gate.recv_multipart()))
                if server.poll(10):
                    frames = server.recv_multipart(copy=False)
                    return [frames[-1].bytes, frames[-1].get("User-Id") if server_keys else None]
            return []
        finally:
            context.destroy(linger=0)


SECRET = b"secret of the wave"
KEYS, OWN = make_keys(3)
OTHER_KEYS, OTHERS = make_keys(3)


def test_a_worker_is_heard_under_its_number() -> None:
    assert speak(OWN[1], KEYS, wait_s=30) == [SECRET, "1"]
    assert speak(None, None, wait_s=30) == [SECRET, None], "what the next test would hear without keys"


@pytest.mark.parametrize(
    ("client", "server"),
    [
        (None, KEYS),
        (OTHERS[0], KEYS),
        (WorkerKeys(OTHERS[0].own, KEYS.own.public), KEYS),
        (WorkerKeys(KeyPair(OWN[0].own.public, OTHERS[0].own.secret), KEYS.own.public), KEYS),
        (OWN[0], None),
        (OWN[0], OTHER_KEYS),
        (OWN[0], PrimaryKeys(KeyPair(KEYS.own.public, OTHER_KEYS.own.secret), KEYS.workers)),
    ],
    ids=[
        *("a stranger without keys", "a worker of another wave", "a stranger that knows the primary's key"),
        *("a stranger that knows a worker's public key", "a server without keys", "the primary of another wave"),
        "a server that knows the primary's public key",
    ],
)
def test_nobody_else_is_heard_or_spoken_to(client: WorkerKeys | None, server: PrimaryKeys | None) -> None:
    assert speak(client, server, wait_s=0.15) == []


def test_a_worker_tells_nothing_to_a_program_that_took_the_primarys_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as impostor, zmq.Context() as context:
        client = context.socket(zmq.DEALER)
        client.setsockopt(zmq.LINGER, 0)
        OWN[0].protect(client)
        client.connect(f"tcp://127.0.0.1:{impostor.getsockname()[1]}")
        client.send(SECRET)
        connection, _ = impostor.accept()
        with connection, client:
            greeting = bytes([0xFF, *bytes(8), 0x7F, 3, 1]) + b"CURVE".ljust(20, b"\0") + bytes([1, *bytes(31)])
            connection.sendall(greeting)
            heard = b""
            while len(heard) < 64 + 200:  # its greeting, then the first word of the handshake
                heard += connection.recv(1000)
    assert b"HELLO" in heard
    assert SECRET not in heard
    assert OWN[0].own.secret not in repr(OWN[0])


ASKED = [b"1.0", b"1", b"wave", b"127.0.0.1", b"", b"CURVE", z85.decode(OWN[2].own.public)]


@pytest.mark.parametrize(
    ("asked", "status", "user"),
    [
        (ASKED, b"200", b"2"),
        ([*ASKED[:2], b"", *ASKED[3:]], b"400", b""),
        ([*ASKED[:5], b"NULL"], b"400", b""),
        ([*ASKED[:5], b"NULL", ASKED[6]], b"400", b""),
        ([*ASKED[:5], b"PLAIN", b"admin", b"password"], b"400", b""),
        ([*ASKED[:6], b""], b"400", b""),
        ([*ASKED[:6], bytes(32)], b"400", b""),
        ([*ASKED[:6], ASKED[6][:31]], b"400", b""),
    ],
)
def test_only_a_workers_key_opens_the_gate(asked: list[bytes], status: bytes, user: bytes) -> None:
    answer = KEYS.answer(asked)
    assert (answer[:3], answer[4:]) == ([b"1.0", b"1", status], [user, b""])


def test_keys_come_back_as_they_went_through_a_pipe() -> None:
    assert PrimaryKeys.from_json(json.loads(json.dumps(KEYS.to_json()))) == KEYS
    assert WorkerKeys.from_json(json.loads(json.dumps(OWN[0].to_json()))) == OWN[0]
    assert len({KEYS.own.secret, *(keys.own.secret for keys in OWN)}) == 4
