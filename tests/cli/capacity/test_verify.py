"""``benchmark capacity --verify``: what is refused before anything is sent, and plans that are proven for real."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker import cli
from inference_benchmarker.cli.capacity import capacity_flags
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.packaged import demo_factories
from server_capacity.results.types.bounds import Endpoint
from tests.fake_cloudwatch import alone
from tests.mentions import mentions
from tests.proofs import PLANNED, planned

if TYPE_CHECKING:
    from pathlib import Path

# Each instance serves two requests at a time, 20 ms each: it is full at 100/s.
SERVED = """
import re
import subprocess
import sys
from pathlib import Path

from geventhttpclient import HTTPClient


def endpoint_factory(COUNT: int = 1, kind: str = "small"):
    flags = ["--port", "0", "--servers", str(2 * COUNT), "--service-time", "0.02"]
    command = [sys.executable, "-m", "inference_benchmarker.cli", "endpoint", *flags]
    Path("made").write_text(f"{COUNT} {kind}")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield re.search(r"http://\\S+", process.stdout.readline())[0]
        process.terminate()
    Path("removed").touch()


def invoke_factory(endpoint_name):
    client = HTTPClient.from_url(endpoint_name, concurrency=1000)

    def invoke(payload):
        with_body = client.post("/invocations", body=payload)
        assert with_body.read() and with_body.status_code == 200

    return invoke


def payload_factory(size: int = 1):
    return {"pre_computed": True, "input": [b"%d" % number * size for number in range(100)]}
"""


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(monkeypatch, tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.py").write_text(SERVED.replace("COUNT", "instances"))


def verify(*arguments: str) -> int:
    return cli.main(["capacity", "--output-dir", "out", *arguments])


@pytest.mark.process
def test_a_plan_is_proven_on_as_many_instances_as_it_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(capacity_flags, "LEAST_TIME_S", 1.0)
    plan = planned(tmp_path, "--target-rps", "100", "--utilisation", "85%")
    capsys.readouterr()

    code = verify("--verify", str(plan), "--factories-file", "f.py", "--time", "1", "--yes")

    printed = capsys.readouterr()
    assert code == 0, printed.err
    (folder,) = (tmp_path / "out").glob("*_proof")
    data = json.loads((folder / "proof.json").read_text())
    assert (
        printed.out.splitlines()[0]
        == data["headline"]
        == "Passed: 2 instances served 100/s for 1.0 s within every limit."
    )
    assert (tmp_path / "made").read_text() == "2 large", "the search's arguments, and the plan's instances"
    assert (tmp_path / "removed").exists()
    assert "1 endpoint, about" in printed.err
    assert mentions(printed.err, "100/s", "2 instances", "1.0 s")
    assert [row["expression"] for row in data["limits"]] == ["p90<1s", "success>=0.95"]
    assert (folder / data["directory"] / "requests.parquet").is_file()
    assert data["endpoint"]["arguments"] == {"instances": 2, "kind": "large"}
    assert 50 < data["sent"] < 150
    assert cli.main(["report", str(folder)]) == 0
    assert capsys.readouterr().out == printed.out.replace("out/", f"{tmp_path}/out/", 1)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--vary", "kind=a"], "--vary is for a search, and --verify sends the plan's target"),
        (["--arrivals", "constant", "--soak", "10"], "--soak is for a search, and --verify sends"),
        ([], "There is no terminal to ask on. Give --yes"),
        (["--slo", "server.CPUUtilization<70%"], "give an --endpoint-config"),
        (["--max-cost", "1", "--yes"], "--max-cost 1: there is no price of"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], said: str
) -> None:
    plan = planned(tmp_path, "--target-rps", "100")
    assert verify("--verify", str(plan / "fleet_plan.json"), "--factories-file", "f.py", *flags) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            SERVED.replace("COUNT", "size"),
            "takes no argument `instances` or `instance_count`, so it cannot create 3",
        ),
        (SERVED.replace("COUNT", "instances").replace("endpoint_factory", "other"), "has no endpoint_factory to"),
        (
            SERVED.replace("COUNT", "instance_count"),
            "endpoint_factory takes no argument 'instances', which the search had",
        ),
        (SERVED.replace("COUNT: int = 1", "instances: int, zone"), "endpoint_factory needs zone, which the search"),
    ],
)
def test_a_file_that_cannot_make_the_fleet_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str, said: str
) -> None:
    (tmp_path / "f.py").write_text(source.replace("COUNT", "instances"))
    plan = planned(tmp_path, "--target-rps", "100")
    assert verify("--verify", str(plan), "--factories-file", "f.py", "--yes") == 2
    assert said in capsys.readouterr().err


def test_an_endpoint_is_not_made_with_what_was_hidden(tmp_path: Path) -> None:
    """Instances would be paid for that have no password."""
    (tmp_path / "f.py").write_text(SERVED.replace("COUNT: int = 1", "instances: int, url"))
    endpoint = Endpoint(name="forest", arguments={"url": "http://me:[hidden]@forest"})
    with pytest.raises(BenchmarkError, match="the search had a secret in url, which is stored as"):
        replace(PLANNED, endpoint=endpoint).job(tmp_path / "f.py")


@pytest.mark.parametrize("hidden", ["[hidden]", {"text": ["a", "key [hidden]"]}])
@pytest.mark.parametrize("is_there", [False, True])
def test_payloads_are_not_built_with_what_was_hidden(tmp_path: Path, *, hidden: Any, is_there: bool) -> None:
    """Requests would be sent that nobody searched with."""
    (tmp_path / "f.py").write_text(SERVED.replace("COUNT", "instances"))
    endpoint = Endpoint(name="forest", payload_arguments={"size": 3, "tag": hidden})
    with pytest.raises(BenchmarkError, match=r"payload_factory.* the search had a secret in tag, which is stored as"):
        replace(PLANNED, endpoint=endpoint, is_there=is_there).job(tmp_path / "f.py")


def test_what_is_no_plan_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify("--verify", "nowhere", "--factories-file", "f.py") == 2
    assert "--verify nowhere: is not there. Give a <timestamp>_plan folder that" in capsys.readouterr().err
    for text, name in (("", "f.json.py"), (json.dumps({"schema_version": 1, "rows": []}), "ranking.json")):
        (tmp_path / name).write_text(text)
        assert verify("--verify", name, "--factories-file", "f.py") == 2
        assert f"--verify {name}: is not a plan. Give a <timestamp>_plan folder" in capsys.readouterr().err
    plan = planned(tmp_path, "--target-rps", "100")
    data = json.loads((plan / "fleet_plan.json").read_text())
    del data["digest"]
    for endpoints, said in (
        ([], "neither plans nor refuses an endpoint"),
        (2 * data["endpoints"], "plans 2 endpoints"),
        ([{}], "missing"),
    ):
        (plan / "fleet_plan.json").write_text(json.dumps({**data, "endpoints": endpoints, "target_rps": None}))
        assert verify("--verify", str(plan), "--factories-file", "f.py") == 2
        assert said in capsys.readouterr().err


def test_several_plans_are_one_problem_that_names_the_newest(capsys: pytest.CaptureFixture[str]) -> None:
    plans = ["b/20261101T000000Z_plan", "a/20261103T000000Z_plan", "c/20261102T000000Z_plan"]
    assert verify("--demo", "--verify", *plans, "--yes") == 2
    assert capsys.readouterr().err == (
        f"benchmark: --verify takes one plan, and 3 were given: the newest is {plans[1]}.\n"
    )


def test_a_plan_of_the_demo_needs_the_demo_before_money_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(tmp_path, "--target-rps", "100")
    data = json.loads((plan / "fleet_plan.json").read_text())
    del data["digest"]
    data["endpoints"][0]["factories_file"] = str(demo_factories(makes_endpoint=True))
    (plan / "fleet_plan.json").write_text(json.dumps(data))
    capsys.readouterr()

    assert verify("--verify", str(plan), "--yes") == 2

    err = capsys.readouterr().err
    assert err.splitlines() == [
        f"benchmark: --verify {plan}: its search used the embedded endpoint, which is not running. "
        "Add --demo, or give --factories-file FILE."
    ]


def test_the_plans_price_bounds_what_its_proof_may_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kind = "ml.m5.large"
    (tmp_path / "f.py").write_text(SERVED.replace("COUNT", "instances").replace("kind:", "instance_type:"))
    arguments = {"instances": 1, "instance_type": kind}
    flags = ("--target-rps", "100", "--price", f"{kind}=100")
    plan = planned(tmp_path, *flags, instance_type=kind, arguments=arguments)
    capsys.readouterr()

    assert verify("--verify", str(plan), "--factories-file", "f.py", "--max-cost", "1", "--yes") == 2

    err = capsys.readouterr().err
    assert "--max-cost 1: the search may cost " in err
    assert "Shorten --time, or raise it." in err


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.process
def test_three_commands_lead_from_nothing_to_a_proof(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    out = ("--output-dir", "out")

    types = "instance_type=ml.m5.large,ml.m5.xlarge"
    assert cli.main(["capacity", "--demo", "--vary", types, "--time", "20", *out]) == 0
    (ranking,) = (tmp_path / "out").glob("*_ranking")
    assert cli.main(["plan", str(ranking), "--target-rps", "150", *out]) == 0
    (plan,) = (tmp_path / "out").glob("*_plan")
    capsys.readouterr()
    assert cli.main(["capacity", "--demo", "--verify", str(plan), *out]) == 0

    assert capsys.readouterr().out.startswith("Passed: ")
    (folder,) = (tmp_path / "out").glob("*_proof")
    data = json.loads((folder / "proof.json").read_text())
    chosen = json.loads((plan / "fleet_plan.json").read_text())["endpoints"][0]["chosen"]["instances"]
    assert data["instances"] == data["endpoint"]["instances"] == chosen, "as many as SageMaker says there were"
    assert data["server_metrics"]["Invocations"]["Sum"] >= data["sent"]
    entries = json.loads((folder / "cleanup.json").read_text())["entries"]
    assert {entry["state"] for entry in entries} <= {"undone", "gone"}
