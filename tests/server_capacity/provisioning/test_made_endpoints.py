"""Endpoints that an endpoint_factory makes in the keeper, and their removal, whoever ends when."""

from __future__ import annotations

import json
import random
import signal
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import psutil
import pytest

import inference_benchmarker
from inference_benchmarker import cli
from inference_benchmarker.cli.capacity.searching import cleaned
from inference_benchmarker.errors import BenchmarkError
from server_capacity.provisioning import making
from server_capacity.provisioning.cleanup_file import CleanupFile, read
from server_capacity.provisioning.handle import Keeper
from server_capacity.provisioning.messages import EndpointOrder
from server_capacity.provisioning.performing import check_call
from server_capacity.provisioning.undo import Call
from tests.made import factories_file, left_running, program
from tests.scaled import await_end, keeper_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from server_capacity.provisioning.handle import MadeEndpoint

pytestmark = pytest.mark.process
ALL_REMOVED = "; everything that it reported with created() is removed"
RESOURCES = {"model", "config", "endpoint"}


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """The folder of an endpoint's resources."""
    there = tmp_path / "there"
    there.mkdir()
    return there


def resources(there: Path) -> set[str]:
    return {path.name for path in there.iterdir()} - {"undone"}


def undone(there: Path) -> list[str]:
    return (there / "undone").read_text().split()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Keeper, Path, list[str]]]:
    """A keeper for several tests, its folder, and what it said."""
    said: list[str] = []
    folder = tmp_path_factory.mktemp("kept")
    with Keeper(folder, said.append, said.append) as keeper:
        yield keeper, folder, said
        said.clear()
    assert keeper.all_is_put_back
    assert said == []


def test_two_endpoints_are_made_at_once_and_removed_each_by_itself(
    kept: tuple[Keeper, Path, list[str]], tmp_path: Path
) -> None:
    keeper, folder, said = kept
    said.clear()
    factories = factories_file(tmp_path)
    homes = [tmp_path / "one", tmp_path / "two"]
    opened, done = threading.Barrier(3, timeout=60), [threading.Event(), threading.Event()]
    made: dict[int, MadeEndpoint] = {}

    def hold(number: int) -> None:
        homes[number].mkdir()
        arguments = {"there": str(homes[number]), "how": "tidy" if number else ""}
        with keeper.endpoint(factories, arguments, f"run-{number}") as made[number]:
            opened.wait()
            done[number].wait()

    threads = [threading.Thread(target=hold, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    opened.wait()
    for number in (0, 1):
        assert made[number].name == "http://there"
        assert made[number].arguments["there"] == str(homes[number])
        assert made[number].seconds > 0
        tags = (homes[number] / "model").read_text()
        assert tags == f"[{{'Key': 'inference-benchmarker-run', 'Value': 'run-{number}'}}]"
    assert len(left_running(folder)) == 4
    assert sorted(said) == sorted([f"{name}: Creating" for name in RESOURCES] * 2)
    done[0].set()
    threads[0].join()
    assert (resources(homes[0]), resources(homes[1])) == (set(), RESOURCES)
    assert undone(homes[0]) == ["endpoint", "config", "model"]
    assert len(left_running(folder)) == 2
    done[1].set()
    threads[1].join()
    assert resources(homes[1]) == set()
    assert left_running(folder) == []
    assert {each.state for each in read(folder)} == {"undone"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"how": "raises"}, r"line \d+: endpoint_factory\(\) raised ConnectionError: no capacity."),
        (
            {"how": "misreported"},
            r"line \d+: .*raised BenchmarkError: created\(\): it was given 'rm model'; expected is a command",
        ),
    ],
)
def test_what_a_factory_made_that_fails_is_removed_at_once(
    kept: tuple[Keeper, Path, list[str]], tmp_path: Path, there: Path, arguments: dict[str, Any], expected: str
) -> None:
    keeper, folder, _ = kept
    endpoint = keeper.endpoint(factories_file(tmp_path), {"there": str(there), **arguments}, "run")
    with pytest.raises(BenchmarkError, match=expected):
        endpoint.__enter__()
    assert resources(there) == set()
    assert left_running(folder) == []


def test_a_factory_runs_with_the_settings_of_the_wave(kept: tuple[Keeper, Path, list[str]], tmp_path: Path) -> None:
    keeper, _, _ = kept
    file = tmp_path / "set.py"
    file.write_text('NAME = "http://default"\n\n\ndef endpoint_factory():\n    yield NAME\n')
    with keeper.endpoint(file, {}, "run", {"NAME": "http://mine"}) as made:
        assert made.name == "http://mine"


def test_a_process_that_left_its_session_and_its_environment_ends_too(
    kept: tuple[Keeper, Path, list[str]], tmp_path: Path, there: Path
) -> None:
    keeper, _, _ = kept
    with keeper.endpoint(factories_file(tmp_path), {"there": str(there), "how": "daemon"}, "run"):
        daemon = psutil.Process(int((tmp_path / "daemon").read_text()))
        assert daemon.environ() == {}
    assert not daemon.is_running() or daemon.status() == psutil.STATUS_ZOMBIE


def test_what_was_not_removed_is_said_to_who_wants_no_progress(tmp_path: Path, there: Path) -> None:
    progress: list[str] = []
    warned: list[str] = []
    arguments = {"there": str(there), "how": "raises at its end"}
    with Keeper(tmp_path, progress.append, warned.append) as keeper:
        with keeper.endpoint(factories_file(tmp_path), arguments, "run"):
            warned.clear()
        assert len(warned) == 2
    assert "the end of endpoint_factory() raised ConnectionError: throttled" in warned[0]
    assert "could NOT be removed: it could not be started" in warned[1]
    assert "`benchmark endpoints clean" in warned[2]
    assert "endpoint: Creating" in progress


def test_a_factory_that_is_tried_by_hand_is_reported_that_nobody_keeps_it(capsys: pytest.CaptureFixture[str]) -> None:
    inference_benchmarker.created(["rm", "a"])
    assert capsys.readouterr().err.startswith("created(): no keeper runs this endpoint_factory")
    assert inference_benchmarker.run_tags() == []


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (Call("sagemaker", "delete_model", {}, "us-east-1"), 'Missing required parameter in input: "ModelName"'),
        (Call("sagemaker", "delete_all", {}, "us-east-1"), "boto3's sagemaker has no delete_all"),
        (Call("sagemakr", "delete_model", {}, "us-east-1"), "Unknown service: 'sagemakr'"),
    ],
)
def test_a_call_that_boto3_does_not_know_is_refused_before_anything_is_made(call: Call, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        check_call(call)


def test_a_factory_that_talks_while_load_is_sent_is_not_held_up(
    kept: tuple[Keeper, Path, list[str]], tmp_path: Path, there: Path
) -> None:
    """Nobody reads then what it says; a server that it runs would stand still with it."""
    keeper, _, said = kept
    with keeper.endpoint(factories_file(tmp_path), {"there": str(there), "how": "talks"}, "run"):
        deadline = time.monotonic() + 60
        while not (tmp_path / "talked").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert (tmp_path / "talked").exists()
    assert resources(there) == set()
    assert "Removing http://there." in said


def said_at_the_end(folder: Path, file: Path, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """Everything that is said once an endpoint that was made is to be removed."""
    ours, theirs = socket.socketpair()
    with CleanupFile.taken(folder) as cleanup, ours, ours.makefile("rb") as heard:
        one = making.Making(cleanup, EndpointOrder(str(file), arguments, "r", {}), theirs, {})
        one.start()
        assert any(b"made" in line for line in heard)
        one.end()
        one.join()
        return [json.loads(line) for line in heard]


def test_a_factory_that_does_not_end_is_ended(tmp_path: Path, there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a user sees it, with the limit of a test: its process, and what it reported, do not stay."""
    monkeypatch.setattr(making, "REMOVAL_S", 0.2)
    said = said_at_the_end(tmp_path, factories_file(tmp_path), {"there": str(there), "how": "deaf"})
    assert said[0]["warn"] == "endpoint_factory did not end within 0.2 s; what it reported is being removed."
    assert said[-1] == {"concluded": [0, 1, 2, 3]}
    assert cleaned(tmp_path) == ("done", (f"endpoint_factory did not end within 0.2 s{ALL_REMOVED}",))
    assert resources(there) == set()
    assert left_running(tmp_path) == []


def test_a_factory_whose_removal_raises_leaves_something_behind(tmp_path: Path) -> None:
    """It reported nothing with created(), so nobody else can remove what it made."""
    file = tmp_path / "f.py"
    file.write_text('def endpoint_factory():\n    yield "http://mine"\n    raise OSError("cannot delete")\n')
    warned, concluded = said_at_the_end(tmp_path, file, {})
    trouble = (
        f"{file}, line 3: the end of endpoint_factory() raised OSError: cannot delete; "
        "it had made http://mine and reported nothing with created()"
    )
    assert warned["warn"].endswith(f"have ended, but the endpoint may still exist: {trouble}. Remove it by hand.")
    assert concluded == {"concluded": [0]}
    assert cleaned(tmp_path) == ("failed", (trouble,))


@pytest.mark.parametrize("whose", ["keeper", "factory"])
def test_an_endpoint_that_is_lost_while_it_is_needed_is_known_to_be(tmp_path: Path, there: Path, whose: str) -> None:
    def lost() -> str:
        end_s = time.monotonic() + 30
        while not made.lost() and time.monotonic() < end_s:
            time.sleep(0.02)
        return made.lost()

    with (
        Keeper(tmp_path, lambda _: None, lambda _: None) as keeper,
        keeper.endpoint(factories_file(tmp_path), {"there": str(there)}, "run") as made,
    ):
        assert made.lost() == ""
        process = psutil.Process(keeper.pid)
        (process if whose == "keeper" else process.children()[0]).kill()
        assert lost() == "the process that keeps the endpoint for this search ended, and the endpoint was removed"
    assert resources(there) == set()


@pytest.mark.parametrize(
    "killing",
    [
        *("keeper", "all", "interrupted"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("command", "factory", "both", "terminated")),
    ],
)
def test_nothing_is_left_whoever_is_killed(
    tmp_path: Path, there: Path, killing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """While the endpoint is made, at an instant that a seed draws."""
    draw = random.Random(killing)
    folder = tmp_path / "run"
    folder.mkdir()
    with program(folder, factories_file(tmp_path), [f"there={there}"], {}) as command:
        assert command.stdout is not None
        for _ in range(draw.randrange(1, 5)):
            command.stdout.readline()
        keeper = keeper_of(command)
        assert keeper is not None
        factory = next((each for each in keeper.children()), None)
        if killing in ("keeper", "both", "all"):
            keeper.kill()
        if killing in ("factory", "all") and factory is not None:
            factory.kill()
        if killing == "terminated":
            keeper.terminate()
        if killing in ("command", "both", "all"):
            command.kill()
        else:
            command.send_signal(signal.SIGINT)
        command.wait()
    await_end(keeper)
    await_end(factory)
    if killing == "all":
        assert cli.main(["endpoints", "clean", str(tmp_path)]) == 0
    assert resources(there) == set()
    assert left_running(folder) == []
    assert cli.main(["endpoints", "clean", str(tmp_path)]) == 0
    assert capsys.readouterr().out.endswith(f"Nothing is left to restore in {tmp_path}.\n")
