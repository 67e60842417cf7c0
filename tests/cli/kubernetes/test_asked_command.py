"""Commands of many waves with ``--kubernetes``: their words and files, put elsewhere, describe the same waves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.cli.capacity.capacity import search_of
from inference_benchmarker.cli.compare.ab_flags import asked_for
from inference_benchmarker.cli.kubernetes.ab_in_pods import ab
from inference_benchmarker.cli.kubernetes.asked_command import search
from inference_benchmarker.engine.pods.objects import FILES
from inference_benchmarker.errors import BenchmarkError
from tests.case import case
from tests.mentions import mentions
from tests.proofs import planned
from tests.waves import open_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.cli.kubernetes.asked_command import AskedCommand
    from inference_benchmarker.plan.plan import WavePlan

FILE = """
import lib.client
SIZE = 1
URL = "http://10.0.0.1/"
def invoke_factory():
    return print
def payload_factory():
    return {"pre_computed": True, "input": [1]}
"""
PODS = ("--pods", "2", "--job-name", "load")
THERE = ("--host-keys", "own.json", "--listen", "10.0.0.5:5557")
AS_IN_PODS = ("--hosts", "load-1*1,load-2*1", "--join-timeout", "600", *THERE)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = ("here/f.py", "here/lib/client.py", "old/f.py", "old/lib/client.py", "here/data.csv")
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(FILE if name.endswith("f.py") else name)
    monkeypatch.chdir(tmp_path / "here")


def words_there(asked: AskedCommand, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words of the command in a pod, from now on in a folder with the files that it has there."""
    for place, content in asked.pods.wave.files.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(content)
    monkeypatch.chdir(folder)
    return [*asked.pods.wave.arguments[1:], *THERE]


def without_file(plans: Sequence[WavePlan]) -> list[WavePlan]:
    return [replace(plan, factories_file=None) for plan in plans]


def test_both_sides_go_to_the_pods_with_all_that_is_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = ("--client-rps", "100", "--with-file", "data.csv", "--seed", "7", "--repeats", "3", "--strict")
    of_one = ("--set-b", "SIZE=3", "--max-regression", "p99=10%")
    asked = ab(["../old/f.py", "f.py", "--kubernetes", *PODS, *load, *of_one, "--markdown", "x.md", "--json"])
    here = asked_for(["../old/f.py", "f.py", *load, *of_one, *AS_IN_PODS])
    there = asked_for(words_there(asked, tmp_path / "there", monkeypatch))
    assert without_file(list(there.plans.values())) == without_file(list(here.plans.values()))
    assert (there.repeats, there.seed, there.limits, there.options.strict) == (3, 7, ("p99=10%",), True)
    assert there.what == {"A": "old/f.py", "B": "f.py (SIZE=3)"}
    assert (asked.output.json, asked.output.markdown, there.options.markdown) == (True, Path("x.md"), None)
    sides = {name: (Path(name) / "lib/client.py").read_text() for name in ("old", ".")}
    assert sides == {"old": "old/lib/client.py", ".": "here/lib/client.py"}
    assert Path("data.csv").is_file()


def test_a_setting_of_this_environment_goes_along_and_a_flag_overrides_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCHMARK_SIZE", "5")
    rows = {(): ["5", "5"], ("--set", "SIZE=2"): ["2", "2"], ("--set-b=SIZE=3",): ["5", "3"]}
    for words, expected in rows.items():
        with case(words):
            monkeypatch.setenv("BENCHMARK_SIZE", "5")
            asked = ab(["f.py", "f.py", "--kubernetes", *PODS, "--client-rps", "1", *words])
            monkeypatch.delenv("BENCHMARK_SIZE")
            plans = asked_for([*asked.pods.wave.arguments[1:], *THERE]).plans.values()
            assert [plan.factory_settings["SIZE"] for plan in plans] == expected


def test_the_job_of_a_and_b_ends_by_the_most_waves_that_they_may_take() -> None:
    """Each takes 600 s to load, 2 of warm-up, 10 of load and 60 to drain; a side's INVALID ones are sent again."""
    waves = ["f.py", "http://10.0.0.1/", "--kubernetes", *PODS, "--client-rps", "1", "--repeats", "3"]
    assert ab(waves).pods.wave.deadline_s == 600 + 12 * (600 + 2 + 10 + 60) + 3_600
    assert ab([*waves, "--deadline", "2h"]).pods.wave.deadline_s == 7_200


def searched_plan(tmp_path: Path) -> Path:
    """A plan whose search sent with ``f.py`` and a setting."""
    wave = open_plan(factories_file=Path("f.py").resolve(), factory_settings={"SIZE": "4"}, request_timeout_s=9)
    return planned(tmp_path / "here", "--target-rps", "100", wave=wave)


def test_a_proof_in_pods_has_the_plan_and_the_file_of_its_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the file was changed since, which its path tells here alone."""
    flags = ("--verify", str(searched_plan(tmp_path).relative_to(Path.cwd())), "--set", "URL=http://10.0.0.9/")
    for number, more in enumerate(("", "\n# changed\n")):
        with case(more):
            monkeypatch.chdir(tmp_path / "here")
            Path("f.py").write_text(FILE + more)
            asked = search(["--kubernetes", *PODS, "--deadline", "1h", *flags])
            here = search_of([*flags, *AS_IN_PODS])
            there = search_of(words_there(asked, tmp_path / f"there{number}", monkeypatch))
            assert without_file([there]) == without_file([here])
            assert there.factory_settings == {"SIZE": "4", "URL": "http://10.0.0.9/"}
            assert sorted(asked.pods.wave.files)[:2] == ["f.py", "lib/client.py"]


def test_a_search_that_ran_in_pods_is_verified_with_the_file_that_went_there(tmp_path: Path) -> None:
    wave = open_plan(factories_file=Path(FILES) / "f.py")
    plan = planned(tmp_path / "here", "--target-rps", "100", wave=wave)
    flags = ("--verify", str(plan), "--set", "URL=http://10.0.0.9/")
    assert search_of([*flags, *AS_IN_PODS]).factories_file == Path("f.py")
    assert "--factories-file=f.py" in search(["--kubernetes", *PODS, "--deadline", "1h", *flags]).pods.wave.arguments


def test_what_does_not_go_to_pods_is_said(tmp_path: Path) -> None:
    plan = searched_plan(tmp_path)
    plan.rename(tmp_path / "elsewhere")
    makes = "def endpoint_factory(instances=1, kind='small'):\n    yield 'x'\n"
    Path("makes.py").write_text(FILE + makes)
    proof = ("--kubernetes", *PODS, "--deadline", "1h", "--verify", "../elsewhere")
    rows = {
        (*proof, "--set", "URL=http://10.0.0.9/"): ("../elsewhere/fleet_plan.json", "below the current folder"),
        (*proof, "--factories-file", "makes.py"): ("endpoint_factory would make an endpoint", "--endpoint-name"),
        (*proof, "--endpoint-name", "x", "--suspend-scaling"): ("--suspend-scaling is not for pods",),
    }
    for words, expected in rows.items():
        with case(words), pytest.raises(BenchmarkError) as refused:
            search([*words])
        assert mentions(str(refused.value), *expected)
