"""The hosts of a plan: read, dealt, refused."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.data.typed import require
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.hosts import Hosts, PlannedHost, hosts_in, hosts_in_lines
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.problems import problems_of, problems_of_values
from tests.waves import open_plan


def on(text: str, **more: Any) -> Hosts:
    return replace(Hosts(hosts_in(text)), **more)


@pytest.mark.parametrize(
    ("text", "name", "workers"),
    [
        ("load1", "load1", None),
        (" load2*4 ", "load2", 4),
        ("admin@load3", "admin@load3", None),
        ("DOMAIN\\me@load3.example.org*16", "DOMAIN\\me@load3.example.org", 16),
        ("10.0.0.5", "10.0.0.5", None),
        ("fe80::1%eth0*2", "fe80::1%eth0", 2),
        ("localhost", "localhost", None),
    ],
)
def test_a_host_is_read(text: str, name: str, workers: int | None) -> None:
    host = PlannedHost.parse(text)
    assert (host.name, host.workers) == (name, workers)
    assert PlannedHost.parse(host.text) == host


@pytest.mark.parametrize(
    "text",
    [
        *("", "*4", "-oProxyCommand=reboot", "-l@load1", "load1;reboot", "load 1", "load1:22", "a@b@c", "@load1"),
        *("load1*0", "load1*-1", "load1*many", "load1*10000", "load1*", "lôad", "$(id)", "load1\nload2", "./socket"),
    ],
)
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(BenchmarkError, match=r"not a host|not a number of workers"):
        PlannedHost.parse(text)


def test_a_file_has_a_host_a_line_and_comments() -> None:
    text = "# two racks\nload1\n\nload2*4   # the large one\n  admin@load3\n"
    assert hosts_in_lines(text) == hosts_in("load1,load2*4,admin@load3")
    with pytest.raises(BenchmarkError, match="line 2: 'load two' is not a host"):
        hosts_in_lines("load1\nload two\n")
    with pytest.raises(BenchmarkError, match="no host in it"):
        hosts_in_lines("# none\n")


def test_workers_are_dealt_evenly_over_hosts_that_name_no_number() -> None:
    assert [host.workers for host in on("a,b*4,c,d").dealt(12).hosts] == [3, 4, 3, 2]
    assert on("a*2,b*4").dealt(6) == on("a*2,b*4")


@given(st.lists(st.none() | st.integers(1, 20), min_size=1, max_size=12), st.integers(1, 200))
def test_dealt_workers_add_up_and_differ_by_one_at_most(numbers: list[int | None], total: int) -> None:
    hosts = Hosts(tuple(PlannedHost(f"h{place}", number) for place, number in enumerate(numbers)))
    try:
        dealt = hosts.dealt(total)
    except BenchmarkError:
        rest = total - sum(number or 0 for number in numbers)
        assert rest < numbers.count(None) or (rest and None not in numbers)
        return
    workers = [host.workers or 0 for host in dealt.hosts]
    shares = [worker for worker, number in zip(workers, numbers, strict=True) if number is None]
    assert sum(workers) == total == dealt.workers
    assert [worker for worker, number in zip(workers, numbers, strict=True) if number] == [n for n in numbers if n]
    assert not shares or max(shares) - min(shares) <= 1 <= min(shares)
    assert [number for each in dealt.numbers.values() for number in each] == list(range(total))


@pytest.mark.parametrize(
    ("text", "total", "expected"),
    [
        ("a*2,b*4", 10, "--workers 10 does not fit: --hosts gives a total of 6"),
        ("a*2,b*4", 5, "--workers 5 does not fit: --hosts gives a total of 6"),
        ("a,b,c", 2, "--workers 2 is too few: each of the 3 hosts needs at least one"),
        ("a,b*4", 4, "Give --workers 5 or more"),
    ],
)
def test_what_does_not_fit_is_refused(text: str, total: int, expected: str) -> None:
    with pytest.raises(BenchmarkError) as raised:
        on(text).dealt(total)
    assert expected in str(raised.value)


def test_a_host_without_a_number_has_a_worker_a_core() -> None:
    plan = open_plan(workers=1).on(on("a,b*4,c"))
    assert (plan.workers, [host.name for host in plan.hosts.uncounted]) == (6, ["a", "c"])
    counted = plan.with_cores({"a": 8, "b": 99, "c": 2})
    assert (counted.workers, problems_of_values(counted)) == (14, [])
    assert counted.hosts.numbers == {"a": range(8), "b": range(8, 12), "c": range(12, 14)}


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        (on("load1,admin@load1"), "--hosts: load1 appears 2 times"),
        (on("LOAD1,load1*2"), "--hosts: load1 appears 2 times"),
        (on("a", join_timeout_s=Decimal("0.5")), "--join-timeout must be from 1 to"),
        (on("a", max_clock_error_s=Decimal(0)), "--max-clock-error must be from 0.000001 to"),
        (on("a", listen="10.0.0.5:99999"), "--listen 10.0.0.5:99999: it must be an address"),
        (on("a", listen="tcp://*"), "--listen tcp://*: it must be an address"),
        (on("a", listen="[1:2]:80"), "--listen [1:2]:80: it must be an address"),
        *(
            (on("a,localhost", listen=listen), f"--listen {listen}: the other hosts cannot reach it")
            for listen in ("127.0.0.1", "0.0.0.0:80", "[::1]", "[::]:80", "localhost")
        ),
        (on("a", pass_env=("API_KEY=abc",)), "--pass-env API_KEY: give only the name of a variable"),
        (on("a", with_files=(Path("/etc/hosts"),)), "--with-file /etc/hosts: give a path below the current folder"),
        (on("a", with_files=(Path("../data.csv"),)), "--with-file ../data.csv: give a path below the current folder"),
        (on("a", host_keys=Path("k")), "--host-keys needs --listen ADDRESS:PORT"),
        (on("a", host_keys=Path("k"), listen="10.0.0.5"), "--host-keys needs --listen ADDRESS:PORT"),
        (on("a", host_keys=Path("k"), listen="0.0.0.0:80"), "--listen 0.0.0.0:80: workers cannot reach it"),
        (Hosts(host_keys=Path("k")), "--host-keys: it needs --hosts"),
        (Hosts(pass_env=("A",)), "--pass-env: it needs --hosts"),
        (Hosts(join_timeout_s=Decimal(5)), "--join-timeout: it needs --hosts"),
    ],
)
def test_problems_are_reported(hosts: Hosts, expected: str) -> None:
    assert any(problem.text.startswith(expected) for problem in problems_of_values(open_plan().on(hosts)))


def test_hosts_that_connect_by_themselves_may_be_processes_of_this_machine() -> None:
    assert list(on("a", host_keys=Path("k"), listen="127.0.0.1:5557").problems()) == []


def test_a_secret_that_was_given_with_its_name_is_not_repeated() -> None:
    (problem,) = on("a", pass_env=("API_KEY=s3cr3t-value",)).problems()
    assert "s3cr3t" not in problem.text


def test_other_workers_than_those_of_the_hosts_are_a_problem() -> None:
    plan = replace(open_plan().on(on("a*2,b*2")), workers=5)
    assert [problem.text[:36] for problem in problems_of_values(plan)] == ["--workers 5: --hosts name 4; leave -"]


def test_files_that_are_not_there_are_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    plan = open_plan().on(on("a", with_files=(Path("data"), Path("no.csv")), requirements=Path("no.txt")))
    texts = [problem.text for problem in problems_of(plan, endpoint_needed=False)]
    assert texts == [
        "--with-file data: this is a folder; give the file in it.",
        "--with-file no.csv: there is no such file.",
        "--requirements no.txt: there is no such file.",
    ]


def test_a_plan_with_hosts_survives_json() -> None:
    more: dict[str, Any] = {
        "listen": "10.0.0.5",
        "host_keys": Path("keys/localhost.json"),
        "pass_env": ("API_KEY",),
        "with_files": (Path("data.csv"),),
    }
    plan = open_plan().on(on("a*2,admin@b*3", max_clock_error_s=Decimal("0.005"), requirements=Path("r.txt"), **more))
    again = WavePlan.from_json(json.loads(json.dumps(plan.to_json())))
    require(again, WavePlan, "plan")
    assert again == plan


def test_a_plan_of_hosts_of_an_earlier_version_is_read() -> None:
    described = open_plan().on(on("a*2")).to_json()
    del described["hosts"]["host_keys"]
    assert WavePlan.from_json(described) == open_plan().on(on("a*2"))


def test_a_plan_of_this_host_alone_says_nothing_of_hosts() -> None:
    described = open_plan().to_json()
    assert described["hosts"] is None
    del described["hosts"]  # of an earlier version
    assert WavePlan.from_json(described) == open_plan()


def test_fewer_workers_are_taken_from_the_hosts_in_turn() -> None:
    plan = open_plan().on(on("a*3,b*1,c*4"))
    assert [host.text for host in plan.with_workers(5).hosts.hosts] == ["a*2", "b*1", "c*2"]
    assert [host.text for host in plan.with_workers(2).hosts.hosts] == ["a*1", "b*1"]
    assert plan.with_workers(99) == plan
    assert problems_of_values(plan.with_workers(2)) == []
    assert open_plan().with_workers(7).workers == 7
