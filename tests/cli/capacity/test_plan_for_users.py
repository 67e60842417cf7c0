"""``benchmark plan --users``: flags, exit codes, the folder, and once a search of our own engine."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from inference_benchmarker import cli
from inference_benchmarker.data.json_file import FOREIGN
from inference_benchmarker.errors import BenchmarkError
from server_capacity.experiments.proof.planned import read_planned
from server_capacity.results.capacity_folder import save
from tests.capacities import searched
from tests.case import case
from tests.mentions import mentions
from tests.users_plans import SESSIONS, talked

DAY = ("--users", "28800", "--conversations-per-day", "3", "--peak-factor", "12")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def capacity(folder: Path, **more: Any) -> Path:
    folder.mkdir(parents=True)
    save(folder, searched(**talked(**more)))
    return folder


def plan(*arguments: str) -> int:
    return cli.main(["plan", *arguments, "--output-dir", "out"])


def only_plan(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    (folder,) = (tmp_path / "out").glob("*_plan")
    return folder, json.loads((folder / "fleet_plan.json").read_text())


def test_a_search_without_its_waves_is_planned_without_a_simulation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capacity(tmp_path / "c")

    assert plan("c", *DAY, "--price", "gpu=4") == 0

    printed = capsys.readouterr().out
    assert mentions(printed.splitlines()[0], "4 replicas of gpu", "28,800 users", "stays on its replica", "$16.00/h")
    assert mentions(printed, "Routing cannot be compared", "none of its waves")
    folder, data = only_plan(tmp_path)
    assert sorted(each.name for each in folder.iterdir()) == [
        "fleet_plan.html",
        "fleet_plan.json",
        "fleet_plan.txt",
        "fleet_plan_routing.png",
    ]
    assert data["users"]["routing"] == "prefix_aware"
    assert cli.main(["report", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == data


def test_both_routings_of_what_is_never_cached(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capacity(tmp_path / "c", sessions={**SESSIONS, "cached_tokens_per_s": 0.0})
    assert plan("c", *DAY, "--json") == 0
    assert [each["replicas"] for each in json.loads(capsys.readouterr().out)["users"]["options"]] == [3, 4, 4, 5] * 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("c --users 10 --peak-factor 2", "--users needs --conversations-per-day"),
        ("c --users 10 --conversations-per-day 2", "--users needs --peak-factor"),
        ("c --users 10 --conversations-per-day 2 --peak-factor 0.5", "--peak-factor must be from 1 to 24, not 0.5."),
        ("c --users 0 --conversations-per-day 2 --peak-factor 2", "--users must be from 1 to"),
        ("c DAY --target-rps 5", "--target-rps is for a plan in req"),
        (
            "c --users 10 --conversations-per-day 2 --peak-factor 2 --growth 5%/min",
            "--growth is for a plan in requests",
        ),
        (
            "c --users 10 --conversations-per-day 2 --peak-factor 2 --routing least_outstanding",
            "random or prefix_aware",
        ),
        ("c c DAY", "the folder of one search, not 2"),
        ("c DAY --kv-tokens 5", "--kv-tokens must be from 1000"),
        ("--mix m.json DAY", "--users is for one search, and --mix"),
        ("c --target-rps 5 --peak-factor 2", "--peak-factor is for --users."),
        ("c --target-rps 5 --routing prefix_aware", "prefix_aware is for --users"),
    ],
)
def test_bad_input_is_exit_code_2_and_makes_no_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: str, said: str
) -> None:
    capacity(tmp_path / "c")
    (tmp_path / "m.json").write_text('[{"capacity": "c", "target_rps": 5}]')
    assert plan(*arguments.replace("DAY", " ".join(DAY)).split()) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_a_search_leaves_open_is_inherited(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inference_benchmarker.cli.capacity.plan.draw_plan", lambda *_: None)
    nothing = {"outcome": "not_kept", "exit_code": 1, "rate": None, "interval": None, "confirmation": None}
    rows: list[tuple[dict[str, Any], tuple[str, ...], int, str]] = [
        ({"sessions": None}, DAY, 1, "single requests"),
        ({}, ("--target-rps", "100"), 1, "plan for --users N"),
        ({}, (*DAY, "--routing", "random"), 1, "random routing cannot be planned"),
        ({"confirmation": []}, DAY, 1, "no wave confirmed it"),
        ({"outcome": "client_limited", "exit_code": 3}, DAY, 3, "the client was the limit of its search"),
        ({"outcome": "interrupted", "exit_code": 130}, DAY, 130, "its search was interrupted"),
        (nothing, DAY, 1, "found no capacity"),
    ]
    for number, (more, arguments, code, said) in enumerate(rows):
        with case(more, arguments):
            capacity(Path(f"c{number}"), **more)
            assert plan(f"c{number}", *arguments) == code
            assert said in capsys.readouterr().out.splitlines()[0]


def test_a_forged_search_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = capacity(tmp_path / "c") / "capacity.json"
    file.write_text(file.read_text().replace('"low": 40.0', '"low": 41.0'))
    assert plan("c", *DAY) == 2
    assert FOREIGN in capsys.readouterr().err


def test_a_forged_plan_is_refused_and_none_for_users_is_verified(tmp_path: Path) -> None:
    capacity(tmp_path / "c")
    assert plan("c", *DAY) == 0
    folder, _ = only_plan(tmp_path)
    with pytest.raises(BenchmarkError, match="plans replicas for users"):
        read_planned(folder)
    file = folder / "fleet_plan.json"
    file.write_text(file.read_text().replace('"replicas": 4', '"replicas": 3'))
    assert cli.main(["report", str(folder)]) == 2


@pytest.mark.slow
@pytest.mark.timeout(900)  # the search takes two minutes, and the plan one or more
def test_a_search_of_the_embedded_engine_is_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draws = random.Random(1)
    with (tmp_path / "talks.jsonl").open("w") as file:
        for _ in range(2000):
            said = [" ".join(["bee"] * draws.randint(50, 500)) for _ in range(draws.randint(2, 5))]
            turns = [(("user", text), ("assistant", "wax " * 20)) for text in said]
            messages = [{"role": role, "content": text} for pair in turns for role, text in pair]
            file.write(json.dumps({"messages": messages}) + "\n")
    asked = ["--demo", "--llm", "--quiet", "--conversations", "talks.jsonl", "--output-dir", "search", "--time", "90"]
    assert cli.main(["capacity", *asked]) in (0, 1)
    (folder,) = (tmp_path / "search").iterdir()

    assert plan(str(folder), *DAY, "--instances", "1") in (0, 1)

    found = only_plan(tmp_path)[1]["users"]
    assert found["options"]
    if found["comparison"]["reason"] is None:  # on a busy machine the fit refuses
        hits = {each["routing"]: each["hit_rate"] for each in found["options"] if each["share"] == 0.7}
        assert hits["random"] < hits["prefix_aware"]
    assert "Little's law" in " ".join(capsys.readouterr().out.split())
