"""The list of what must be put back: on disk before a change, one process's, and trusted only where it was made."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import stat
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.cli.capacity.searching import cleaned
from inference_benchmarker.data.json_file import FOREIGN
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.exit_codes import MISSED
from server_capacity.provisioning import restoring
from server_capacity.provisioning.cleaning import clean
from server_capacity.provisioning.cleanup_file import LOCK, NAME, CleanupFile, HeldError, left_in, read, unknown_in
from server_capacity.provisioning.performing import GoneError, NotDoneError
from server_capacity.provisioning.restoring import note_bad_end, outcome_text, restore
from server_capacity.provisioning.undo import Call, CommandLine, Processes, undo_given, undo_of

if TYPE_CHECKING:
    from pathlib import Path

    from server_capacity.provisioning.cleanup_file import State
    from server_capacity.provisioning.undo import Undo

PROCESSES = Processes("0123456789abcdef")
PARAMETERS = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": "endpoint/it's/variant/a b",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
    "SuspendedState": {"a": True},
}
CALL = Call("application-autoscaling", "register_scalable_target", PARAMETERS, "us-east-1")


def commands(*words: str) -> list[CommandLine]:
    return [CommandLine((word,)) for word in words]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One with a file that holds a call and a command line."""
    folder = tmp_path / "search"
    folder.mkdir()
    with CleanupFile.taken(folder) as cleanup:
        cleanup.hold("scaling", CALL, "1")
        cleanup.hold("endpoint", CommandLine(("rm", "a b")), None)
    return folder


class TestUndo:
    @settings(max_examples=30)
    @given(st.lists(st.text(st.characters(exclude_characters="\0"), max_size=9), min_size=1, max_size=3))
    def test_a_command_line_comes_back_from_json_and_from_a_shell(self, arguments: list[str]) -> None:
        undo = CommandLine(tuple(arguments))
        assert undo_of(json.loads(json.dumps(undo.to_json()))) == undo
        assert shlex.split(undo.by_hand) == arguments

    def test_a_call_comes_back_from_json_and_from_the_line_to_be_pasted(self) -> None:
        assert undo_of(json.loads(json.dumps(CALL.to_json()))) == CALL
        program, service, operation, _, region, _, parameters = shlex.split(CALL.by_hand)
        assert (program, service, operation, region) == (
            "aws",
            "application-autoscaling",
            "register-scalable-target",
            "us-east-1",
        )
        assert json.loads(parameters) == PARAMETERS

    @pytest.mark.parametrize(
        "changed",
        [
            {"service": "sagemaker"},
            {"service": "sagemaker", "operation": "create_endpoint"},
            {"service": "sagemaker", "operation": "delete"},
            {"service": "sagemaker --x", "operation": "delete_endpoint"},
            {"parameters": {}},
            {"parameters": {**PARAMETERS, "MinCapacity": 0}},
            {"parameters": [1]},
            {"region": "us-east-1 --endpoint-url x"},
            {"region": None},
            {"endpoint_url": "file:///etc/passwd"},
            {"endpoint_url": "http://user:password@host"},
            {"endpoint_url": 1},
            {"more": 1},
        ],
    )
    def test_a_call_that_this_tool_does_not_write_is_refused(self, changed: dict[str, Any]) -> None:
        with pytest.raises((ValueError, TypeError)):
            undo_of({**CALL.to_json(), **changed})

    @pytest.mark.parametrize("operation", ["delete_endpoint", "deregister_scalable_target", "stop_task"])
    def test_what_takes_away_may_be_called(self, operation: str) -> None:
        undo = undo_of({**CALL.to_json(), "operation": operation, "parameters": {}})
        assert isinstance(undo, Call)
        assert undo.removes
        assert not CALL.removes

    def test_the_end_of_processes_comes_back_from_json(self) -> None:
        assert undo_of(json.loads(json.dumps(PROCESSES.to_json()))) == PROCESSES

    def test_a_command_is_given_as_a_list_or_as_it_stands_in_the_file(self) -> None:
        """For an endpoint that is none of AWS's: no region is asked for."""
        undo = CommandLine(("kubectl", "delete", "pod", "p"))
        for each in (list(undo.arguments), undo.to_json()):
            assert undo_given(each, None) == undo

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ("rm x", "it was given 'rm x'.*expected is a command as a list of texts.*write \\['rm', 'x'\\]"),
            ([], r"a command is a list of one text or more, .*; it was given \[\]"),
            (["kill", 7], r"a command is a list of one text or more, .*; it was given \['kill', 7\]"),
            ({"command": "rm x"}, r"it was given 'rm x'.*write \['rm', 'x'\]"),
            ({"command": ["rm", "x"], "region": "r"}, "a command has no region"),
            ({"comand": ["rm", "x"]}, "expected is a command as a list of texts"),
            ({}, "expected is a command as a list of texts"),
            (None, "it was given None; expected is a command as a list of texts"),
            (7, "it was given 7; expected is"),
            ({"processes": "0123456789abcdef"}, "expected is a command as a list of texts"),
            (["\0"], "without NUL"),
            ({"service": "s3", "parameters": {}}, "has service, operation and parameters; missing: operation"),
            ({**CALL.to_json(), "more": 1}, "a call of boto3 has no more"),
            ({"service": "sagemaker", "operation": "delete_model", "parameters": {}}, "it names no region"),
            (
                {"service": "sagemaker", "operation": "create_model", "parameters": {}, "region": "r"},
                "is not a call that",
            ),
        ],
    )
    def test_an_undo_of_the_users_is_reported_by_what_it_lacks(self, given: Any, expected: str) -> None:
        with pytest.raises(ValueError, match=expected):
            undo_given(given, None)

    def test_an_undo_of_the_users_has_the_configured_region(self) -> None:
        given = {"service": "sagemaker", "operation": "delete_model", "parameters": {"ModelName": "m"}}
        assert undo_given(given, "eu-west-1") == Call("sagemaker", "delete_model", {"ModelName": "m"}, "eu-west-1")
        assert shlex.split(replace(CALL, endpoint_url="http://127.0.0.1:1").by_hand)[5:7] == [
            "--endpoint-url",
            "http://127.0.0.1:1",
        ]
        assert undo_given({**given, "region": "r"}, None).to_json()["region"] == "r"

    @pytest.mark.parametrize(
        "data",
        [
            None,
            [],
            {},
            {"processes": "1"},
            {"processes": ["0" * 16]},
            {"command": []},
            {"command": "rm x"},
            {"command": ["a", 1]},
        ],
    )
    def test_what_is_no_undo_is_refused(self, data: Any) -> None:
        with pytest.raises((ValueError, TypeError)):
            undo_of(data)


class TestFactoryThatEndedBadly:
    """``reported``: what became of each thing that created() got."""

    @pytest.mark.parametrize(
        ("reported", "name", "state", "reason"),
        [
            ([], "http://a", "unknown", "it raised; it had made http://a and reported nothing with created()"),
            ([], "", "unknown", "it raised; it reported nothing with created()"),
            (["gone", "undone"], "a", "undone", "it raised; everything that it reported with created() is removed"),
            (["held", "undone"], "a", "undone", "it raised"),
        ],
    )
    def test_nobody_knows_what_is_left_where_it_reported_nothing(
        self, tmp_path: Path, reported: list[State], name: str, state: str, reason: str
    ) -> None:
        with CleanupFile.taken(tmp_path) as cleanup:
            number = cleanup.hold("processes of f.py", PROCESSES, None)
            cleanup.conclude(number, "undone")
            others = [cleanup.hold("model", CommandLine(("rm", "a")), None) for _ in reported]
            for other, became in zip(others, reported, strict=True):
                if became != "held":
                    cleanup.conclude(other, became)
            note_bad_end(cleanup, number, "it raised", others, name)
        found = read(tmp_path)[0]
        assert (found.state, found.reason) == (state, reason)
        assert cleaned(tmp_path) == ("failed" if {"unknown", "held"} & {state, *reported} else "done", (reason,))

    def test_it_is_said_to_whoever_cleans(self, tmp_path: Path) -> None:
        with CleanupFile.taken(tmp_path) as cleanup:
            cleanup.conclude(cleanup.hold("processes of f.py", PROCESSES, None), "unknown", "it raised")
        said: list[str] = []
        assert (clean(tmp_path, said.append), unknown_in(read(tmp_path))) == (MISSED, [0])
        assert said == [
            f"{tmp_path.name}: processes of f.py: have ended, but the endpoint may still exist: it raised. "
            f"Remove it by hand. Then delete {tmp_path / NAME}."
        ]


class TestFile:
    def test_what_is_held_is_on_disk_for_its_owner_alone(self, folder: Path) -> None:
        assert stat.S_IMODE((folder / NAME).stat().st_mode) == 0o600
        entries = read(folder)
        assert [(each.what, each.undo, each.account, each.state) for each in entries] == [
            ("scaling", CALL, "1", "held"),
            ("endpoint", CommandLine(("rm", "a b")), None, "held"),
        ]
        assert left_in(entries) == [1, 0]
        assert [each["by_hand"] for each in json.loads((folder / NAME).read_text())["entries"]][1] == "rm 'a b'"

    def test_one_process_holds_it_at_a_time(self, folder: Path) -> None:
        with CleanupFile.taken(folder), pytest.raises(HeldError, match="a running process holds cleanup"):
            CleanupFile.taken(folder).__enter__()
        with CleanupFile.taken(folder) as cleanup:
            assert len(cleanup.entries) == 2

    def test_a_copy_is_not_run(self, folder: Path, tmp_path: Path) -> None:
        """As from an archive: everything is the user's own, and nobody else can write it."""
        shutil.copytree(folder, tmp_path / "copy")
        with pytest.raises(BenchmarkError, match="was not written where it lies"):
            read(tmp_path / "copy")
        folder.rename(tmp_path / "moved")
        assert len(read(tmp_path / "moved")) == 2

    def test_what_is_too_large_spoils_nothing_that_is_held(self, tmp_path: Path) -> None:
        with CleanupFile.taken(tmp_path) as cleanup:
            cleanup.hold("first", CommandLine(("rm", "a")), None)
            with pytest.raises(BenchmarkError, match="no room"):
                cleanup.hold("too large", CommandLine(("rm", "b" * 3_000_000)), None)
            for _ in range(2):
                cleanup.hold("large", CommandLine(("rm", "c" * 900_000)), None)
            assert cleanup.hold("last", CommandLine(("rm", "d")), None) == len(cleanup.entries) - 1
            for number in range(len(cleanup.entries)):
                cleanup.fail(number, "\u00e9" * 500)
            assert [each.undo for each in read(tmp_path)] == [each.undo for each in cleanup.entries]

    def test_what_cannot_be_read_again_spoils_nothing_that_is_held(self, tmp_path: Path) -> None:
        with CleanupFile.taken(tmp_path) as cleanup:
            cleanup.hold("first", CommandLine(("rm", "a")), None)
            with pytest.raises(BenchmarkError, match="cannot be read"):
                cleanup.hold("nan", replace(CALL, parameters={"a": 1}), None)
            assert [each.what for each in cleanup.entries] == [each.what for each in read(tmp_path)] == ["first"]

    def test_its_lock_may_be_linked_and_touched(self, folder: Path, tmp_path: Path) -> None:
        """As by a tool that makes backups; neither makes it another's."""
        (tmp_path / "link").hardlink_to(folder / LOCK)
        os.utime(folder / LOCK, (1, 1))
        (folder / LOCK).chmod(0o644)
        assert len(read(folder)) == 2

    def test_one_that_others_can_write_is_not_run(self, folder: Path) -> None:
        for mode in (0o620, 0o602):
            (folder / NAME).chmod(mode)
            with pytest.raises(BenchmarkError, match="can be written by others"):
                read(folder)

    def test_one_of_another_user_is_not_run(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: 4711)
        with pytest.raises(BenchmarkError, match="belongs to another user"):
            read(folder)

    def test_a_link_is_not_followed(self, folder: Path) -> None:
        (folder / NAME).rename(folder / "elsewhere")
        (folder / NAME).symlink_to("elsewhere")
        with pytest.raises(BenchmarkError, match="symbolic link"):
            read(folder)

    @pytest.mark.parametrize(
        "damage",
        [
            list,
            lambda data: {"lock": data["lock"]},
            lambda data: {**data, "entries": [1]},
            lambda data: {**data, "entries": [{**data["entries"][0], "state": "new"}]},
            lambda data: {**data, "entries": [{**data["entries"][0], "undo": {"service": "sagemaker"}}]},
        ],
    )
    def test_what_is_not_as_ours_is_a_sentence(self, folder: Path, damage: Any) -> None:
        path = folder / NAME
        data = json.loads(path.read_text())
        del data["digest"]
        path.write_text(json.dumps(damage(data)))
        with pytest.raises(BenchmarkError, match=FOREIGN):
            read(folder)

    def test_what_was_changed_since_is_not_run_and_an_earlier_version_wrote_no_digest(self, folder: Path) -> None:
        path = folder / NAME
        data = json.loads(path.read_text())
        data["entries"][1]["what"] = "another"
        path.write_text(json.dumps(data))
        with pytest.raises(BenchmarkError, match="it was changed after it was stored"):
            read(folder)
        del data["digest"]
        path.write_text(json.dumps(data))
        assert [entry.what for entry in read(folder)] == ["scaling", "another"]

    def test_nothing_is_changed_where_the_file_could_not_be_read_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("server_capacity.provisioning.cleanup_file.OWNER_ONLY", 0o666)
        before = os.umask(0)
        try:
            with CleanupFile.taken(tmp_path) as cleanup, pytest.raises(BenchmarkError, match="written by others"):
                cleanup.hold("scaling", CALL, None)
        finally:
            os.umask(before)

    def test_a_folder_that_takes_no_lock_is_a_sentence(self, tmp_path: Path) -> None:
        (tmp_path / LOCK).symlink_to("anywhere")
        with pytest.raises(BenchmarkError, match="cannot be opened"):
            CleanupFile.taken(tmp_path).__enter__()


class TestPuttingBack:
    @pytest.fixture
    def tried(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The undos in the order of their attempts. The name of each says what it does."""
        tried: list[str] = []

        def undo(action: Undo, account: str | None) -> None:
            name = action.by_hand
            tried.append(name)
            if name == "gone":
                raise GoneError
            if name == "denied":
                raise NotDoneError("not allowed", final=True)
            if name == "broken":
                raise ZeroDivisionError("ours")
            if name == "busy" and tried.count(name) < 6:
                raise NotDoneError("it is being created", final=False, busy=True)
            if name == "down" or (name == "slow" and tried.count(name) < 3):
                raise NotDoneError("no connection", final=False)

        monkeypatch.setattr(restoring, "perform_undo", undo)
        return tried

    def test_what_rankings_left_is_found_in_them_and_behind_no_link(self, tmp_path: Path, tried: list[str]) -> None:
        places = [tmp_path / "out" / name for name in ("1_capacity", "2_ranking/1_capacity", "2_ranking/2_capacity")]
        for place in [*places, tmp_path / "elsewhere" / "3_capacity"]:
            place.mkdir(parents=True)
            with CleanupFile.taken(place) as cleanup:
                cleanup.hold(place.name, CommandLine((f"of {place.parent.name}/{place.name}",)), None)
        (tmp_path / "out" / "3_ranking").symlink_to(tmp_path / "elsewhere")

        assert clean(tmp_path / "out", print) == 0
        assert [shlex.split(each)[0].split("/")[-2:] for each in tried] == [
            ["of out", "1_capacity"],
            ["of 2_ranking", "1_capacity"],
            ["of 2_ranking", "2_capacity"],
        ]

    def test_the_last_change_comes_first_and_no_failure_keeps_another(self, tmp_path: Path, tried: list[str]) -> None:
        now = [0.0]

        def sleep(seconds: float) -> None:
            now[0] += seconds

        with CleanupFile.taken(tmp_path) as cleanup:
            for command in commands("first", "slow", "down", "broken", "denied", "gone", "last"):
                cleanup.hold(command.by_hand, command, None)
            assert not restore(cleanup, 10, lambda: now[0], sleep)
            assert list(dict.fromkeys(tried)) == ["last", "gone", "denied", "broken", "down", "slow", "first"]
        assert now[0] < 10
        entries = read(tmp_path)
        assert [(each.state, each.reason) for each in entries] == [
            ("undone", None),
            ("undone", None),
            ("held", "no connection"),
            ("held", "ZeroDivisionError: ours"),
            ("held", "not allowed"),
            ("gone", None),
            ("undone", None),
        ]
        assert outcome_text(entries[4]) == "denied: could NOT be removed: not allowed. By hand:\n  denied"

    def test_what_takes_its_time_is_tried_again_and_what_is_undone_is_not(
        self, tmp_path: Path, tried: list[str]
    ) -> None:
        with CleanupFile.taken(tmp_path) as cleanup:
            for command in commands("first", "slow"):
                cleanup.hold(command.by_hand, command, None)
            assert restore(cleanup, 10, lambda: 0.0, lambda _: None)
            assert restore(cleanup)
        assert tried == ["slow", "slow", "slow", "first"]

    def test_what_is_busy_is_waited_for_longer(self, tmp_path: Path, tried: list[str]) -> None:
        now = [0.0]

        def sleep(seconds: float) -> None:
            now[0] += seconds

        with CleanupFile.taken(tmp_path) as cleanup:
            for command in commands("first", "busy", "other"):
                cleanup.hold(command.by_hand, command, None)
            assert not restore(cleanup, 1, lambda: now[0], sleep, busy_s=5, of=(0, 1))
            assert restore(cleanup, 1, lambda: now[0], sleep, busy_s=100, of=(0, 1))
            assert left_in(cleanup.entries) == [2]
        assert tried.count("first") == 1

    def test_a_disk_that_is_full_keeps_nothing_from_being_undone(self, tmp_path: Path, tried: list[str]) -> None:
        with CleanupFile.taken(tmp_path) as cleanup:
            for command in commands("first", "last"):
                cleanup.hold(command.by_hand, command, None)
            (tmp_path / LOCK).unlink()
            assert restore(cleanup)
        assert tried == ["last", "first"]

    def test_a_disk_that_is_full_keeps_nothing_from_being_tried_again(self, tmp_path: Path, tried: list[str]) -> None:
        with CleanupFile.taken(tmp_path) as cleanup:
            cleanup.hold("endpoint", CommandLine(("busy",)), None)
            (tmp_path / LOCK).unlink()
            assert restore(cleanup, 10, lambda: 0.0, lambda _: None)
        assert tried == ["busy"] * 6
