"""Sessions that are sent from separate hosts: their turns are those that the server saw."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker import cli
from inference_benchmarker.embedded.running import EndpointConfig, start
from inference_benchmarker.engine.launch import run_wave
from inference_benchmarker.plan.load import Bounds
from inference_benchmarker.wave.wave import Wave
from inference_benchmarker.words.units import NS
from tests.engine.hosts.plans import a_plan
from tests.hosts.host import Spec

if TYPE_CHECKING:
    from tests.hosts.lab import Lab
    from tests.performance.stamp_server import StampServer

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("users_ssh")]

SESSIONS = 60
FACTORIES = """
from inference_benchmarker import Turn
from inference_benchmarker.clients import HttpClient

SERVER = ""


def invoke_factory(endpoint_name=None):
    client = HttpClient(SERVER)
    return lambda payload: client.request("POST", "/", payload).body


def session_factory():
    def session(number):
        for turn in range(1 + number % 4):
            yield Turn(str(10 * number + turn).encode(), think_s=0.02)

    return session
"""


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    path = tmp_path / "chats.py"
    path.write_text(FACTORIES)
    return path


def test_every_turn_of_every_session_is_seen_once_and_each_session_stays_on_its_host(
    lab: Lab, stamps: StampServer, tmp_path: Path, chats: Path
) -> None:
    hosts = lab.start(Spec("one", 500), Spec("other", -50))
    plan = a_plan(tmp_path, stamps.url, *(f"{host.name}*1" for host in hosts))
    plan = replace(plan, factories_file=chats, bounds=Bounds(num_requests=SESSIONS))
    wave = run_wave(plan)
    expected = {10 * number + turn for number in range(SESSIONS) for turn in range(1 + number % 4)}
    assert sorted(stamps.log()["id"]) == sorted(expected)
    ledger = wave.ledger
    assert (ledger.sent, ledger.ok, ledger.sessions_completed) == (len(expected), len(expected), SESSIONS)
    assert ledger.later_turns == len(expected) - SESSIONS
    assert Counter(row.turn for row in wave.records) == Counter(1 + each % 10 for each in expected)
    senders = {(row.session, row.worker) for row in wave.records}
    assert len(senders) == SESSIONS
    assert {worker for _, worker in senders} == {0, 1}
    assert [host.left() for host in hosts] == [[], []]


def test_recorded_conversations_are_sent_from_several_hosts(
    lab: Lab, laboratory: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each turn is at the server once, with the lengths of the file, and a warm-up's sessions count in the rates."""
    monkeypatch.chdir(tmp_path)
    lab.start(Spec("one", 500), Spec("other", -50))
    turns = [{"session_id": at % 30, "timestamp": 10 * at, "input_length": 600, "output_length": 3} for at in range(90)]
    lines = [json.dumps({**turn, "hash_ids": [turn["session_id"], 99 + at]}) for at, turn in enumerate(turns)]
    Path("trace.jsonl").write_text("\n".join(lines), encoding="utf-8")
    with start(EndpointConfig(service_s=0.002), host=laboratory.address) as endpoint:
        flags = (
            *(f"{endpoint.url}/v1", "--model", "demo", "--conversations", "trace.jsonl", "--hosts", "one*1,other*1"),
            *("--client-rps", "20", "--num-requests", "30", "--warmup", "1", "--session-header", "X-Request-Id"),
        )
        code = cli.main([*flags, "--output-dir", "runs", "--max-clock-error", "50ms"])
        log = Counter(map(str, endpoint.arrivals()["id"]))
    assert code in (0, 3)  # of a busy machine
    (folder,) = Path("runs").iterdir()
    wave = Wave.load(folder)
    rows = [*wave.warmup, *wave.records]
    assert Counter(row.session for row in wave.records) == dict.fromkeys(range(30), 3)
    assert sum(log.values()) == len(rows)
    assert Counter(log.values()) == Counter(Counter(row.session for row in rows).values())
    assert {row.worker for row in wave.records} == {0, 1}
    end = wave.window.planned_ns or 0
    sent = [row for row in rows if 0 <= row.due < end and row.sent - row.build_ns < end + 5_000_000]
    assert wave.summary.rates.sent * end / NS == pytest.approx(len(sent))
    assert any(row.index < 0 for row in sent)


def test_a_check_sends_one_session_from_each_host(
    lab: Lab, stamps: StampServer, chats: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(chats.parent)
    chats.write_text(FACTORIES.replace("1 + number % 4", "3"))
    lab.start(Spec("one"))
    assert cli.main(["check", "--factories-file", "chats.py", "--set", f"SERVER={stamps.url}", "--hosts", "one*1"]) == 0
    assert capsys.readouterr().out.startswith("✓ one: a session of 3 turns, answered in ")
    assert sorted(stamps.log()["id"]) == [0, 1, 2]
    chats.write_text(FACTORIES.replace("1 + number % 4", "3").replace("think_s=0.02", 'think_s="x"'))
    assert cli.main(["check", "--factories-file", "chats.py", "--set", f"SERVER={stamps.url}", "--hosts", "one*1"]) == 1
    assert capsys.readouterr().out.startswith("✗ one: ")
