"""The flags of hosts: every command that sends a wave has them, and what makes no sense is refused in a sentence."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker import cli
from inference_benchmarker.cli.capacity.capacity import capacity_parser
from inference_benchmarker.cli.capacity.capacity_flags import make_question
from inference_benchmarker.cli.compare.ab_flags import asked_for
from inference_benchmarker.cli.endpoint.client import saturation_parser
from inference_benchmarker.cli.endpoint.client_flags import make_conditions
from inference_benchmarker.cli.wave.wave import wave_of
from inference_benchmarker.engine.hosts import checking
from inference_benchmarker.engine.hosts.checking import Checked
from inference_benchmarker.engine.hosts.clocks import ClockOffset
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.hosts import Hosts
from inference_benchmarker.plan.problems import problems_of_values
from tests.mentions import mentions

if TYPE_CHECKING:
    from server_capacity.experiments.measurements.question import Question

FACTORIES = """
def invoke_factory():
    return lambda payload: None
def payload_factory():
    return {"pre_computed": True, "input": [1]}
"""
WAVE = ["--factories-file", "f.py", "--client-rps", "10", "--obs-time", "1"]


@pytest.fixture(autouse=True)
def _a_folder_with_factories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("API_KEY", "abc")
    for name, text in {"f.py": FACTORIES, "hosts": "load1\nload2*4 # big\n", "data.csv": "", "r.txt": ""}.items():
        Path(name).write_text(text)


def test_all_of_them_reach_the_plan() -> None:
    plan = wave_of(
        [
            *WAVE,
            *("--hosts", "load1,load2*4,admin@load3", "--workers", "10", "--join-timeout", "2m"),
            *("--max-clock-error", "5ms", "--listen", "10.0.0.5:5557", "--pass-env", "API_KEY"),
            *("--with-file", "data.csv", "--with-file", str(Path.cwd() / "r.txt"), "--requirements", "r.txt"),
            *("--host-keys", "keys/localhost.json"),
        ]
    )
    assert (plan.workers, [host.text for host in plan.hosts.hosts]) == (10, ["load1*3", "load2*4", "admin@load3*3"])
    assert plan.hosts.join_timeout_s == 120
    assert plan.hosts.max_clock_error_s == Decimal("0.005")
    assert plan.hosts.listen == "10.0.0.5:5557"
    assert plan.hosts.pass_env == ("API_KEY",)
    assert plan.hosts.with_files == (Path("data.csv"), Path("r.txt"))
    assert plan.hosts.requirements == Path("r.txt")
    assert plan.hosts.host_keys == Path("keys/localhost.json")


def test_a_file_says_the_same_as_a_list() -> None:
    assert wave_of([*WAVE, "--hosts-file", "hosts"]) == wave_of([*WAVE, "--hosts", "load1,load2*4"])
    Path("f.toml").write_text('hosts = "load1,load2*4"\n')
    assert wave_of([*WAVE, "--config", "f.toml"]) == wave_of([*WAVE, "--hosts", "load1,load2*4"])


def test_a_file_is_read_as_a_whole_or_not_at_all() -> None:
    """Hosts at the end of a long one would be left out without a word."""
    Path("marked").write_text("load1,load2*4".replace(",", "\n"), "utf-8-sig")
    assert wave_of([*WAVE, "--hosts-file", "marked"]) == wave_of([*WAVE, "--hosts", "load1,load2*4"])
    Path("long").write_text(f"{'# a comment' * 100_000}\nload1\n")
    with pytest.raises(BenchmarkError, match=r"--hosts-file long: cannot be read \(is larger than 1 MiB\)"):
        wave_of([*WAVE, "--hosts-file", "long"])


def test_without_them_a_plan_is_what_it_was() -> None:
    assert wave_of(WAVE).hosts == Hosts()
    assert wave_of([*WAVE, "--workers", "3"]).workers == 3


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("--hosts load1 --hosts-file hosts", "Give either --hosts or --hosts-file, not both."),
        ("--hosts load1,-oProxyCommand=x", "--hosts: '-oProxyCommand=x' is not a host."),
        ("--hosts-file none", "--hosts-file none: cannot be read (No such file or directory)."),
        ("--hosts-file f.py", "--hosts-file f.py: line 2: 'def invoke_factory():' is not a host."),
        ("--hosts a*2 --workers 3", "--workers 3 does not fit: --hosts gives a total of 2."),
        ("--hosts a,b --workers 1", "--workers 1 is too few: each of the 2 hosts needs at least one"),
        ("--hosts a*2 --concurrency 1", "--concurrency 1 cannot be split over 2 workers"),
        ("--hosts a --demo", "--demo is not for --hosts: the embedded endpoint listens on this host's loopback"),
        ("--hosts a --calibrate", "--calibrate is not for --hosts: "),
        ("--hosts a --pass-env NO_SUCH", "--pass-env NO_SUCH: there is no such variable in this command's"),
        ("--hosts a --pass-env API_KEY=abc", "--pass-env API_KEY: give only the name of a variable"),
        ("--hosts a --with-file no.csv", "--with-file no.csv: there is no such file."),
        ("--hosts a --with-file ../x", "--with-file ../x: give a path below the current folder"),
        ("--listen 10.0.0.5", "--listen: it needs --hosts"),
    ],
)
def test_what_makes_no_sense_is_said(flags: str, expected: str) -> None:
    load = WAVE[:2] + WAVE[4:] if "--concurrency" in flags else WAVE
    with pytest.raises(BenchmarkError) as raised:
        wave_of([*load, *flags.split()])
    (line,) = str(raised.value).splitlines()
    assert line.startswith(expected)


def test_hosts_that_could_not_be_read_are_said_alone() -> None:
    with pytest.raises(BenchmarkError) as raised:
        wave_of([*WAVE, "--hosts", "load 1", "--pass-env", "API_KEY", "--workers", "2"])
    assert len(str(raised.value).splitlines()) == 1


def test_this_host_alone_may_have_a_demo() -> None:
    assert wave_of(["--demo", "--hosts", "localhost"]).hosts.numbers == {"localhost": range(2)}


def question(*flags: str) -> Question:
    arguments = ["--factories-file", "f.py", "--slo", "p99<100ms", *flags]
    return make_question(capacity_parser().parsed(arguments)[0], [])


def test_a_search_works_with_all_workers_of_its_hosts() -> None:
    found = question("--hosts", "a*3,b*2")
    assert (found.plan.workers, found.most_workers) == (5, 5)
    assert found.confirmation(10, 1, 5, Path()).hosts.workers == 5
    assert question("--hosts", "a,b", "--workers", "4").plan.hosts.numbers == {"a": range(2), "b": range(2, 4)}
    assert question("--workers", "4").most_workers == 4


def test_a_search_of_users_takes_no_more_workers_than_users() -> None:
    plan = question("--in", "users", "--hosts", "a*3,b*2").confirmation(3, 1, 5, Path())
    assert [host.text for host in plan.hosts.hosts] == ["a*2", "b*1"]
    assert problems_of_values(plan) == []


def test_several_searches_do_not_share_hosts() -> None:
    with pytest.raises(BenchmarkError, match="--vary is not for --hosts"):
        question("--hosts", "a", "--vary", "instance_type=ml.m5.large,ml.c5.large")


def test_both_sides_of_ab_have_the_same_hosts() -> None:
    asked = asked_for(["f.py", "f.py", "--client-rps", "10", "--hosts", "a*2,b"])
    assert {side: plan.hosts.workers for side, plan in asked.plans.items()} == {"A": 3, "B": 3}


def test_the_command_ends_with_2_and_one_line_for_each_problem(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*WAVE, "--hosts", "a,a", "--join-timeout", "0"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "benchmark: --hosts: a appears 2 times: name it once, as a*N.",
        "benchmark: --join-timeout must be from 1 to 2,592,000 seconds, not 0.",
    ]


def test_a_check_of_hosts_fits_80_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ClockOffset(1, 9e9, 20_000, None, 40_000, 50_000, 0)
    found = [
        Checked("load1.example.org", None, "0.1.0", "3.12.1", 96, 1_048_576, clock),
        Checked("nosuchhost.invalid", "ssh: Could not resolve hostname nosuchhost.invalid: Name or service not known"),
    ]
    monkeypatch.setattr(checking, "check_hosts", lambda _: found)
    monkeypatch.setenv("COLUMNS", "79")
    assert cli.main(["hosts", "check", "--hosts", "load1.example.org,nosuchhost.invalid"]) == 2
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 79
    assert mentions(" ".join(shown.split()), "1,048,576", "round trip", "✗ nosuchhost.invalid", "not known.")


def test_the_clients_limit_is_searched_with_the_workers_of_the_hosts_in_turn() -> None:
    parser = saturation_parser("rps-saturation")
    found = make_conditions("rps-saturation", parser.parsed(["--factories-file", "f.py", "--hosts", "a*3,b*1"])[0], [])
    assert [host.text for host in found.plan(100.0, 3, Path()).hosts.hosts] == ["a*2", "b*1"]
    assert found.to_json()["hosts"]["hosts"] == ["a*3", "b*1"]
    with pytest.raises(BenchmarkError, match=r"--hosts b: .* number of workers .*, as in b\*8"):
        make_conditions("rps-saturation", parser.parsed(["--factories-file", "f.py", "--hosts", "a*3,b"])[0], [])
    line = ["--factories-file", "f.py", "--hosts", "a*3,b*1", "--max-workers", "9"]
    with pytest.raises(BenchmarkError, match="--max-workers 9: --hosts name 4 of them"):
        make_conditions("rps-saturation", parser.parsed(line)[0], [])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("keys --hosts load1", ["--keys-dir DIR"]),
        ("keys --keys-dir new", ["--hosts LIST"]),
        ("keys --hosts load1 --keys-dir f.py/new", ["--keys-dir f.py/new"]),
        ("join", ["--address", "--host-keys"]),
        ("join --address 10.0.0.5 --host-keys f.py", ["ADDRESS:PORT"]),
        ("join --address 10.0.0.5:5557 --host-keys f.py --join-timeout x", ["--join-timeout must be a number"]),
        ("join --address 10.0.0.5:5557 --host-keys f.py", ["--host-keys f.py: it does not hold the keys"]),
    ],
)
def test_hosts_that_connect_by_themselves_need_an_address_and_keys(
    arguments: str, expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["hosts", *arguments.split()]) == 2
    said = capsys.readouterr().err
    assert all(mentions(line, part) for line, part in zip(said.splitlines(), expected, strict=False)), said
    assert len(said.splitlines()) >= len(expected)
    assert not Path("new").exists()
