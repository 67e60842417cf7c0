"""What a client holds: searches with real waves, and what is made of their findings."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from client_capacity import rps_saturation
from client_capacity.conditions import Conditions
from client_capacity.saturation_result import RpsSaturation, WorkersRow
from client_capacity.search import HighestRate, LimitedBy, Step
from client_capacity.worker_saturation import WorkerSaturation
from inference_benchmarker.plan.hosts import Hosts, PlannedHost
from inference_benchmarker.system.host import usable_cores
from inference_benchmarker.wave.wave import Wave
from tests.bench import SENDER
from tests.mentions import mentions

if TYPE_CHECKING:
    from tests.bench import Bench, Finished

BUSY = """
import time


def invoke_factory():
    return spin_for_5_ms


def spin_for_5_ms(payload):
    end = time.perf_counter() + 0.005
    while time.perf_counter() < end:
        pass


def payload_factory():
    return {"pre_computed": True, "input": [0]}
"""
CALLS = """
from sender import post


def invoke_factory():
    return post


def payload_factory():
    return {"pre_computed": True, "input": list(range(1000))}
"""
TRUTH = 1 / 0.00502
QUICK = ("--factories-file", "f.py", "--step-time", "0.5", "--output-dir", "runs")
CONDITIONS = Conditions(Path("f.py"))
STEP = Step("growing", 8, completed_rate=8, run_dir="a")
LATE = Step("growing", 16, "client", "lag p99 > 5 ms", blocked_by="spin (f.py:3)")


def worker(limited_by: LimitedBy, *steps: Step, rate: float = 12, high: float | None = 14) -> WorkerSaturation:
    return WorkerSaturation(rate, 10, high, limited_by, steps, CONDITIONS, Path("runs/x_worker_saturation"))


def row(workers: int, rate: float, limited_by: LimitedBy | None = "client") -> WorkersRow:
    return WorkersRow(workers, rate, limited_by, 0.9, 0.5, (STEP,))


class TestWorkerResult:
    def test_a_limit_of_the_client_names_the_rate_its_interval_and_what_fills_it(self) -> None:
        text = worker("client", STEP, LATE).to_text()
        assert mentions(text, "12/s", "95%", "10", "14/s", "f.py:3")
        assert "Give a worker up to 9.6/s (80%)" in text
        assert text.splitlines()[-1] == "Run directory: runs/x_worker_saturation"

    @pytest.mark.parametrize(
        ("limited_by", "what"),
        [
            ("server", "The endpoint was the limit, not this client (12/s completed): to measure the client alone"),
            ("errors", "Requests failed (12/s completed): fix that"),
            ("max_rps", "No higher rate was tried: raise --max-rps"),
            ("interrupted", "Interrupted before the limit was found."),
        ],
    )
    def test_where_another_is_the_limit_the_client_holds_at_least_that(self, limited_by: LimitedBy, what: str) -> None:
        text = worker(limited_by, STEP, replace(LATE, reason="12/s completed"), high=None).to_text()
        assert f"One worker can send at least 12/s. {what}" in text

    def test_nothing_held_is_said(self) -> None:
        assert mentions(worker("client", LATE, rate=0).to_text(), "14/s", "p99", "5 ms")
        assert "Every rate was too high. Requests failed" in worker("errors", LATE, rate=0, high=None).to_text()

    def test_a_machine_that_was_not_quiet_is_said(self) -> None:
        text = worker("client", STEP, replace(LATE, disturbed=True)).to_text()
        assert "In 1 of 2 steps other programs used the core: repeat on a quiet machine." in text

    def test_the_table_has_a_row_a_step_with_its_reason(self) -> None:
        rows = worker("client", STEP, LATE).to_text().splitlines()[2:5]
        assert rows[0].split()[:2] == ["rate/s", "held"]
        assert rows[1].split()[:3] == ["growing", "8", "yes"]
        assert rows[2].endswith("lag p99 > 5 ms")

    def test_a_row_fits_a_terminal_and_a_long_reason_stands_below_it(self) -> None:
        wide = replace(
            LATE, rate=19_870, lag_p50_s=0.0234567, lag_p99_s=0.0234567, dropped=12_345, completed_rate=19_870
        )
        wide = replace(wide, worker_cpu_share=1.0, host_cpu_share=1.0, max_rss_bytes=1_400_000_000)
        long = replace(wide, reason="lag p99 > 5 ms, blocked by " + "spin (some/file.py:3) " * 5)
        lines = worker("client", wide, long).to_text().split("One worker")[0].splitlines()
        assert lines[3].endswith("100%  lag p99 > 5 ms")
        assert lines[4].endswith("100%")
        assert lines[5].startswith("        lag p99 > 5 ms, blocked by")
        assert max(map(len, lines)) <= 100

    def test_what_hindered_the_client_is_named(self) -> None:
        pool = replace(LATE, reason="connection_pool: 96% waited", blocked_by=None, finding="connection_pool")
        assert mentions(worker("client", STEP, pool).to_text(), "14/s", "connection_pool", "96%")

    def test_secrets_stay_out_of_the_result(self) -> None:
        secret = "https://me:hunter22@host/x"
        step = replace(LATE, reason=f"ValueError {secret}")
        found = replace(worker("errors", step), conditions=replace(CONDITIONS, endpoint_name=secret))
        client = RpsSaturation((replace(row(1, 9, "errors"), steps=(step,)),), "errors", found.conditions)
        for result in (found, client):
            assert "hunter22" not in result.to_text() + json.dumps(result.to_json())
        assert found.to_json()["conditions"]["endpoint_name"] == "https://[hidden]@host/x"

    def test_as_json_it_has_every_step(self) -> None:
        data = json.loads(json.dumps(worker("client", STEP, LATE).to_json()))
        assert (data["schema_version"], data["kind"], data["rate"]) == (1, "worker_saturation", 12)
        assert data["interval"] == {"low": 10, "high": 14}
        assert [step["held"] for step in data["steps"]] == [True, False]
        assert data["conditions"]["lag_limit_s"] == 0.005


class TestClientResult:
    @staticmethod
    def of(*rows: WorkersRow, limited_by: Any = "client", wanted: float | None = None) -> RpsSaturation:
        return RpsSaturation(rows, limited_by, replace(CONDITIONS, wanted_rps=wanted))

    def test_the_fewest_workers_that_hold_nearly_the_most_are_to_be_used(self) -> None:
        found = self.of(row(1, 1000), row(2, 1900), row(3, 1950))
        assert (found.rate, found.workers) == (1950, 2)
        assert mentions(found.to_text(), "1,950/s", "--workers 2")

    @pytest.mark.parametrize(
        ("rate", "workers"), [(1, 1), (800, 1), (801, 2), (1520, 2), (1530, 3), (1900, 2), (1950, 3), (1951, None)]
    )
    def test_workers_for_a_rate_have_room_where_there_is_any(self, rate: float, workers: int | None) -> None:
        assert self.of(row(1, 1000), row(2, 1900), row(3, 1950)).workers_for(rate) == workers

    def test_a_rate_beyond_the_client_gets_advice(self) -> None:
        found = self.of(row(1, 1000), row(2, 1000), wanted=3000)
        assert mentions(found.to_text(), "cannot send 3,000/s", "4 machines like it")
        assert found.to_json()["wanted"] == {"rate": 3000, "workers": None}
        assert "not known" in self.of(row(1, 1000, "server"), limited_by="server").advice_for(2000)
        assert "make invoke faster" in self.of(row(1, 0)).advice_for(1)

    def test_nothing_held_is_said(self) -> None:
        text = self.of(replace(row(1, 0), steps=(LATE,))).to_text()
        assert "This client cannot even send 16/s: lag p99 > 5 ms. Make invoke faster." in text
        assert not mentions(text, "headroom")

    def test_a_rate_that_is_tight_is_said(self) -> None:
        found = self.of(row(1, 1000), row(2, 1900))
        assert found.advice_for(700) == "For 700/s use --workers 1 (1 can send 1,000/s)."
        assert mentions(found.advice_for(1800), "2", "1,900/s")

    def test_a_given_rate_is_distinguished_from_a_measured_one(self) -> None:
        found = self.of(WorkersRow(1, 1000, None), row(2, 1800, "server"), limited_by="server")
        lines = found.to_text().splitlines()
        assert lines[3].split() == ["1", "1,000", "1,000", "-", "-", "(given)"]
        assert lines[4].split()[:4] == ["2", "≥", "1,800", "900"]
        assert "This client can send at least 1,800/s. The endpoint was the limit" in found.to_text()

    @pytest.mark.parametrize("rate", [0, -1, float("nan")])
    def test_a_rate_that_is_none_is_refused(self, rate: float) -> None:
        with pytest.raises(ValueError, match="a rate must be above 0 requests/s"):
            self.of(row(1, 1000)).workers_for(rate)

    def test_a_machine_that_was_not_quiet_is_said(self) -> None:
        bad = replace(row(2, 1800), steps=(STEP, replace(LATE, disturbed=True)))
        found = self.of(row(1, 1000), bad)
        assert "In 1 of 3 steps other programs used the core: repeat on a quiet machine." in found.to_text()
        crowded = replace(found, cores=2).to_text()
        assert "used the core (or the primary and the endpoint, where they share the cores): repeat on" in crowded
        assert "other programs" not in self.of(row(1, 1000), row(2, 1800)).to_text()

    def test_the_host_that_was_the_limit_is_named(self) -> None:
        late = [replace(LATE, late_hosts=names) for names in (("load2",), ("load3", "load2"), ())]
        found = self.of(row(1, 1000), replace(row(2, 1000), steps=(STEP, *late)))
        assert "load2 was the limit: it was late in 2 of the 3 steps that" in found.to_text()
        assert json.loads(json.dumps(found.to_json()))["rows"][1]["steps"][1]["late_hosts"] == ["load2"]
        assert "was the limit: it" not in self.of(row(1, 1000), replace(row(2, 1000), steps=(STEP, LATE))).to_text()

    def test_where_all_workers_of_the_hosts_were_tried_more_hosts_are_the_advice(self) -> None:
        hosts = Hosts(tuple(map(PlannedHost.parse, ("load1*1", "load2*1"))))
        conditions = replace(CONDITIONS, hosts=hosts)
        found = RpsSaturation((row(1, 1000), row(2, 1900)), "max_workers", conditions)
        assert "More than 2 workers were not tried: name more of them with --hosts." in found.to_text()
        here = RpsSaturation((row(1, 1000), row(2, 1900)), "max_workers", CONDITIONS)
        assert "More than 2 workers were not tried: raise --max-workers." in here.to_text()

    def test_more_workers_that_hold_less_are_a_doubt(self) -> None:
        assert "2 workers send less than 1: other programs" in self.of(row(1, 1000), row(2, 900)).to_text()
        assert "hold less" not in self.of(row(1, 1000), row(2, 900, "server"), limited_by="server").to_text()

    def test_the_cores_that_may_be_used_count(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("os.sched_getaffinity", lambda _: {1, 5, 6}, raising=False)
        monkeypatch.setattr("os.cpu_count", lambda: 64)
        assert usable_cores() == 3

    def test_a_row_has_the_hardware_of_the_highest_step_held(self) -> None:
        steps = (STEP, replace(STEP, rate=9, worker_cpu_share=0.4, host_cpu_share=0.2), LATE)
        made = WorkersRow.of(2, HighestRate(9, 9, 16, "client", steps))
        assert (made.worker_cpu_share, made.host_cpu_share) == (0.4, 0.2)
        assert made.to_json()["rate_per_worker"] == 4.5


def write(folder: Path, factories: str) -> Path:
    """The folder with a factories file in it, and what sends for it."""
    (folder / "f.py").write_text(factories)
    (folder / "sender.py").write_text(SENDER)
    return folder


def saturate(bench: Bench, command: str, factories: str, *flags: str, **options: Any) -> tuple[Finished, Path]:
    """A search and its result's directory."""
    folder = write(bench.folder(), factories)
    running = bench.start("client", command, *QUICK, *flags, factories=None, folder=folder, **options)
    done = running.finish(timeout=200)
    (result,) = (folder / "runs").iterdir()
    return done, result


@pytest.mark.process
@pytest.mark.timeout(240)  # a search has as many steps as the machine's noise makes it take
@pytest.mark.slow
def test_a_busy_invoke_is_found_out(bench: Bench) -> None:
    flags = ("--repeats", "0", "--lag-limit", "0.02", "--json")
    done, folder = saturate(bench, "worker-saturation", BUSY, *flags)
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found == json.loads((folder / "result.json").read_text())
    assert found["limited_by"] == "client"
    assert 0.1 * TRUTH < found["rate"] < 1.3 * TRUTH  # a busy machine holds less; a short step lets more pass
    assert found["interval"]["low"] == found["rate"] < found["interval"]["high"]
    assert any("spin_for_5_ms" in (step["blocked_by"] or "") for step in found["steps"])
    assert folder.name.endswith("_worker_saturation")
    check_steps(folder, found["steps"])
    lines = done.err.splitlines()
    assert sum("held " in line for line in lines) == len(found["steps"])
    assert sum(line.startswith("trying ") and line.endswith(")...") for line in lines) == len(found["steps"])
    assert "One worker can send" in (folder / "result.txt").read_text()


def check_steps(folder: Path, steps: list[dict[str, Any]]) -> None:
    """Each step is a wave that can be loaded, and nothing else is there."""
    assert {path.name for path in folder.iterdir()} == {"result.json", "result.txt"} | {s["run_dir"] for s in steps}
    for step in steps:
        wave = Wave.load(folder / step["run_dir"])
        assert wave.plan.target_rate == step["rate"]
        assert wave.ledger.sent == step["sent"]
        assert wave.plan.workers == 1


@pytest.mark.process
@pytest.mark.slow
def test_an_endpoint_that_is_the_limit_is_named(bench: Bench) -> None:
    with bench.endpoint(servers=2, service_s=0.02) as endpoint:
        flags = ("--step-time", "1", "--lag-limit", "0.2")
        done, folder = saturate(bench, "worker-saturation", CALLS, *flags, target=endpoint)
    assert done.code == 0, done.err
    assert "One worker can send at least " in done.out
    assert "The endpoint was the limit, not this client (" in done.out
    found = json.loads((folder / "result.json").read_text())
    assert (found["limited_by"], found["interval"]["high"]) == ("server", None)
    assert 30 < found["rate"] < 130


@pytest.mark.process
@pytest.mark.slow
def test_failing_requests_end_the_search(bench: Bench) -> None:
    failing = BUSY.replace("end = time", "raise ValueError(1)\n    end = time")
    done, folder = saturate(bench, "worker-saturation", failing, "--lag-limit", "1", "--quiet")
    assert (done.code, done.err) == (1, "")
    found = json.loads((folder / "result.json").read_text())
    assert (found["limited_by"], found["rate"], len(found["steps"])) == ("errors", 0, 2)
    assert "most by ValueError" in found["steps"][0]["reason"]
    assert "Every rate was too high. Requests failed (" in done.out


@pytest.mark.process
def test_workers_for_a_wanted_rate(bench: Bench) -> None:
    flags = ("--worker-rps", "5", "--client-rps", "8", "--lag-limit", "1", "--json")
    done, folder = saturate(bench, "rps-saturation", BUSY, *flags)
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["wanted"] == {"rate": 8, "workers": 2}
    assert [(row["workers"], row["limited_by"]) for row in found["rows"]] == [(1, None), (2, "max_rps")]
    assert found["limited_by"] == "wanted"
    assert "For 8/s use --workers 2" in (folder / "result.txt").read_text()


@pytest.mark.process
def test_ctrl_c_keeps_what_was_measured(bench: Bench) -> None:
    folder = write(bench.folder(), BUSY)
    running = bench.start("client", "worker-saturation", *QUICK, "--lag-limit", "1", factories=None, folder=folder)
    running.wait_for(lambda: running.err.count("/s held ") >= 2, "two steps")
    running.signal(signal.SIGINT)
    done = running.finish()
    assert done.code == 130
    assert "One worker can send at least " in done.out
    assert "Interrupted before the limit was found." in done.out


@pytest.mark.process
def test_ctrl_c_in_the_first_step_is_reported_as_it_is(bench: Bench) -> None:
    folder = write(bench.folder(), BUSY)
    running = bench.start(
        "client", "rps-saturation", *QUICK, "--json", "--step-time", "30", factories=None, folder=folder
    )
    running.wait_for(lambda: "trying 8/s (growing)... " in running.err, "the first step")
    running.signal(signal.SIGINT)
    done = running.finish()
    assert (done.code, done.out) == (130, "")
    assert done.err.splitlines()[-1] == "Interrupted before the first step ended: no rate was measured."
    assert "nothing was measured" not in done.err


@pytest.mark.process
@pytest.mark.slow
def test_ctrl_c_in_a_later_step_prints_the_result_as_json(bench: Bench) -> None:
    folder = write(bench.folder(), BUSY)
    running = bench.start(
        "client", "rps-saturation", *QUICK, "--lag-limit", "1", "--json", factories=None, folder=folder
    )
    running.wait_for(lambda: running.err.count("/s held ") >= 1, "a step")
    running.wait_for(lambda: running.err.splitlines()[-1].startswith("trying "), "the next one")
    running.signal(signal.SIGINT)
    done = running.finish()
    assert done.code == 130
    assert json.loads(done.out)["limited_by"] == "interrupted"


@pytest.mark.process
def test_a_file_that_cannot_work_leaves_nothing(bench: Bench) -> None:
    folder = write(bench.folder(), BUSY.replace('"input": [0]', '"input": []'))
    done = bench.run("client", "worker-saturation", *QUICK, factories=None, folder=folder)
    assert done.code == 2
    assert "Traceback" not in done.err
    assert "f.py" in done.err
    assert list((folder / "runs").iterdir()) == []


@pytest.mark.parametrize(
    ("rate", "limited_by", "max_rps", "end"),
    [
        (562.5, "max_rps", 20_000.0, "wanted"),
        (561.7, "max_rps", 20_000.0, "wanted"),  # as completed in a short step at 562.5/s
        (561.7, "max_rps", 250.0, None),  # two workers were tried to 500/s only
        (400.0, "client", 20_000.0, None),
        (340.0, "client", 20_000.0, "client"),
    ],
)
def test_more_workers_are_tried_until_what_is_wanted_was_held(
    rate: float, limited_by: Any, max_rps: float, end: str | None
) -> None:
    assert rps_saturation.limit_reached([WorkersRow(1, 330, None), row(2, rate, limited_by)], 562.5, max_rps) == end
