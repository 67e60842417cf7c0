"""Scripts written for the original tool: its arguments, the keys of its results, its functions."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

import client_capacity
from client_capacity import client_metrics, rps_saturation, worker_saturation
from client_capacity.aiperf_extension import payload_factory_to_jsonl
from client_capacity.client_metrics import establish_client_baseline, sample_client_metrics, wait_for_client_idle
from client_capacity.conditions import Conditions
from client_capacity.limits import find_file_descriptors_limit
from client_capacity.rps_saturation import find_rps_saturation
from client_capacity.saturation_result import RpsSaturation, WorkersRow
from client_capacity.search import Step
from client_capacity.worker_saturation import WorkerSaturation, find_worker_saturation
from inference_benchmarker.errors import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Callable

CONDITIONS = Conditions(Path("f.py"))
STEPS = (Step("growing", 8, sent=24), *(Step("repeating", 12, sent=sent) for sent in (36, 38, 40)))
WORKER = WorkerSaturation(12.5, 10, 14, "client", STEPS, CONDITIONS, Path("runs/x"))
CLIENT = RpsSaturation((WorkersRow(1, 12.5, None), WorkersRow(2, 20, "client")), "client", CONDITIONS, Path("runs/y"))
FACTORIES = """
def payload_factory():
    return {{"pre_computed": {ready}, "input": {given}}}
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Conditions]:
    """The conditions of the searches that would have been made."""
    found: list[Conditions] = []
    monkeypatch.setattr(worker_saturation, "measure_worker", lambda conditions, _: found.append(conditions))
    monkeypatch.setattr(rps_saturation, "measure_client", lambda conditions, _: found.append(conditions))
    return found


def _called(search: Any, *arguments: Any, **former: Any) -> None:
    search(*arguments, **former)


def test_arguments_that_have_a_meaning_are_given_to_it(asked: list[Conditions]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        find_worker_saturation("f.py", start_users=50, end_users=900, confidence_samples=10)
        find_worker_saturation("f.py", start_users=None, end_users=None, confidence_samples=3)
        find_rps_saturation("f.py", 300, end_workers=4)
    first, second, third = asked
    assert (first.start_rps, first.max_rps, first.repeats) == (50, 900, 10)
    assert (second.start_rps, second.max_rps, second.repeats) == (8, 20_000, 4)
    assert (third.worker_rps, third.max_workers) == (300, 4)


@pytest.mark.parametrize("name", ["user_step", "confidence_users_scale", "sample_interval_seconds"])
def test_an_argument_without_a_meaning_is_accepted_and_says_what_is_done_instead(
    name: str, asked: list[Conditions]
) -> None:
    with pytest.warns(
        DeprecationWarning, match=rf"^find_worker_saturation: {name} has no meaning any more: \w+"
    ) as reported:
        _called(find_worker_saturation, "f.py", **{name: 1})
    assert reported[0].filename == __file__, "the script that gives it"
    assert asked == [CONDITIONS]


@pytest.mark.parametrize(
    "name",
    ["start_workers", "worker_step", "plateau_threshold", "confidence_samples", "confidence_users_scale"],
)
def test_the_same_with_several_workers(name: str, asked: list[Conditions]) -> None:
    with pytest.warns(DeprecationWarning, match=rf"^find_rps_saturation: {name} has no meaning any more: \w+"):
        _called(find_rps_saturation, "f.py", 12, **{name: 1})
    assert len(asked) == 1


@pytest.mark.parametrize("search", [find_worker_saturation, find_rps_saturation])
def test_an_argument_that_nobody_knows_is_an_error(search: Callable[..., object], asked: list[Conditions]) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'stat_users'"):
        search("f.py", stat_users=1)
    assert asked == []


def test_before_a_search_it_is_waited_until_the_client_is_idle(
    asked: list[Conditions], monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[Any] = []
    monkeypatch.setattr(client_metrics, "wait_for_client_idle", waited.append)
    find_worker_saturation("f.py", client_idle_max_wait_config={"max_wait_seconds": 1})
    find_rps_saturation("f.py", 12, client_idle_max_wait_config=None)
    assert waited == [{"max_wait_seconds": 1}]
    assert len(asked) == 2


def test_a_workers_result_is_read_like_a_dictionary() -> None:
    assert WORKER["saturation_users"] == 12.5 == WORKER.get("confidence_users")
    assert WORKER["run_dir"] == Path("runs/x")
    fired = {name: WORKER[name] for name in ("fired_counts", "mean_fired", "std_fired", "min_fired", "max_fired")}
    assert fired == {"fired_counts": [36, 38, 40], "mean_fired": 38, "std_fired": 2, "min_fired": 36, "max_fired": 40}
    assert WORKER["confidence_samples"] == 3
    assert "saturation_users" in WORKER
    assert dict(WORKER) == {key: WORKER[key] for key in WORKER.keys()}  # noqa: SIM118 - it is what is promised
    assert bool(WORKER)


def test_a_clients_result_is_read_like_a_dictionary() -> None:
    values = {"saturation_workers": 2, "saturation_requests": 20, "users_per_worker": 12.5, "run_dir": Path("runs/y")}
    assert {key: CLIENT[key] for key in values} == values
    assert [row["rate"] for row in CLIENT["results"]] == [12.5, 20]


@pytest.mark.parametrize(
    ("result", "key", "said"),
    [
        (WORKER, "hw_metrics", "hw_metrics is not kept any more: each of result.steps has worker_cpu_share"),
        (WORKER, "baseline", "baseline is not kept any more: no baseline is taken"),
        (CLIENT, "confidence_mean", "confidence_mean is not kept any more: this search repeats nothing"),
        (CLIENT, "confidence_hw_list", "confidence_hw_list is not kept any more: each row of result.rows"),
        (WorkerSaturation(12, 8, 14, "client", STEPS[:1], CONDITIONS), "mean_fired", "this result has no such value"),
        (WORKER, "nothing", "'nothing'"),
    ],
)
def test_a_key_without_a_value_says_so_and_invents_none(result: Any, key: str, said: str) -> None:
    with pytest.raises(KeyError, match=re.escape(said)):
        result[key]
    assert key not in result
    assert result.get(key, 7) == 7
    assert key not in list(result)


def test_the_limits_are_read_like_a_dictionary() -> None:
    limits = find_file_descriptors_limit()
    assert limits["per_process"]["soft"] == limits.soft
    assert limits["per_process"]["hard"] == limits.hard
    assert limits["system_wide"] == {"current": limits.system_open, "hard": limits.system_max}
    assert list(limits) == ["system_wide", "per_process"]


def test_the_host_is_sampled() -> None:
    found = sample_client_metrics(0.05, 0.01)
    assert 2 <= found["sample_count"] <= 6
    for name in ("cpu", "memory"):
        least, mean, most = (found[f"{name}_{which}"] for which in ("min", "avg", "max"))
        assert 0 <= least <= most <= 100, found
        assert least - 1e-9 <= mean <= most + 1e-9, found  # a mean of equal numbers is rounded
    assert found["memory_max"] == pytest.approx(psutil.virtual_memory().percent, abs=20)
    assert establish_client_baseline(sample_seconds=0.01)["sample_count"] == 1


@pytest.mark.parametrize(
    ("percent", "config", "idle"),
    [
        (5.0, None, True),
        (11.0, {"max_wait_seconds": 0}, False),
        (11.0, {"max_wait_seconds": 0, "cpu_tolerance": 0.2}, True),
        (5.0, {"max_wait_seconds": 0, "memory_threshold": 4}, False),
    ],
)
def test_it_is_waited_until_the_host_is_idle_or_time_is_over(
    percent: float, config: dict[str, Any] | None, idle: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"cpu_avg": percent, "memory_avg": percent}
    monkeypatch.setattr(client_metrics, "sample_client_metrics", lambda *_: found)
    said: list[str] = []
    assert wait_for_client_idle(config, say=said.append) is idle
    assert said[0].startswith("Waiting until CPU is at 1")
    assert len(said) == 2
    assert wait_for_client_idle(config, print_header=False, say=said.append) is idle
    assert len(said) == 3


def test_without_a_limit_it_is_waited_on(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = iter([90.0, 80.0, 1.0])
    monkeypatch.setattr(
        client_metrics, "sample_client_metrics", lambda *_: {"cpu_avg": next(shares), "memory_avg": 1.0}
    )
    assert wait_for_client_idle({"wait_limit": False, "max_wait_seconds": 0})
    assert list(shares) == []


def test_a_key_of_waiting_that_there_is_not_is_reported() -> None:
    with pytest.raises(BenchmarkError, match="max_wait_config has no key cpu_treshold"):
        wait_for_client_idle({"cpu_treshold": 5})


def test_payloads_are_lines_as_aiperf_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "ready.py"
    file.write_text(FACTORIES.format(ready=True, given="""[{"messages": []}, '{"prompt": "x"}']"""))
    written = payload_factory_to_jsonl(file, tmp_path / "new" / "payloads.jsonl")
    assert [json.loads(line) for line in written.read_text().splitlines()] == [{"messages": []}, {"prompt": "x"}]


@pytest.mark.parametrize(
    ("ready", "given", "said"),
    [
        (False, "dict", "payloads are built per request"),
        (True, "[b'\\xff']", "payload 0 is not JSON"),
        (True, "[b'[' * 9999]", "is not JSON"),
    ],
)
def test_payloads_that_make_no_lines_are_reported(ready: bool, given: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / f"not_{ready}.py"
    file.write_text(FACTORIES.format(ready=ready, given=given))
    with pytest.raises(BenchmarkError, match=said):
        payload_factory_to_jsonl(file, tmp_path / "payloads.jsonl")
    assert not (tmp_path / "payloads.jsonl").exists()


def test_the_package_has_what_scripts_import_from_it() -> None:
    for name in client_capacity.__all__:
        assert callable(getattr(client_capacity, name))
