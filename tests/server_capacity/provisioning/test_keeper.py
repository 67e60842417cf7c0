"""The scaling of an endpoint is suspended and put back, whoever is killed in between."""

from __future__ import annotations

import json
import re
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import boto3
import psutil
import pytest

from inference_benchmarker import cli
from inference_benchmarker.data.json_file import FOREIGN
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.packaged import demo_factories
from inference_benchmarker.verdict.server.known_metrics import INSTANCES
from server_capacity.metrics.prometheus.block import ServerBlock
from server_capacity.provisioning import performing
from server_capacity.provisioning.cleanup_file import NAME, CleanupFile, read
from server_capacity.provisioning.performing import GoneError, NotDoneError, client_of, perform, perform_undo, placed
from server_capacity.provisioning.restoring import restore
from server_capacity.provisioning.scaling import active_scaling, resources, suspended_scaling
from server_capacity.provisioning.undo import Call, CommandLine
from tests import scaled
from tests.capacities import searched
from tests.fake_cloudwatch import cloudwatch_block
from tests.moto_server import moto_server
from tests.scaled import BEFORE, BLOCKS, SUSPENDED, VARIANT, Scaled, await_end, keeper_of, register, search

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from server_capacity.experiments.capacity.waves import Waves
    from server_capacity.results.types.capacity import CapacityResult

DEREGISTER = Call("application-autoscaling", "deregister_scalable_target", VARIANT, "us-east-1")


@pytest.fixture(scope="module")
def one() -> Iterator[Scaled]:
    with scaled.scaled() as one:
        yield one


@pytest.fixture(autouse=True)
def _aws(one: Scaled, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in one.endpoint.aws_environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", one.endpoint.url)
    register(one.scaling)


def test_a_block_names_variants_and_inference_components() -> None:
    (variant,) = BLOCKS
    component = replace(variant, dimensions=(("InferenceComponentName", "c"),))
    instance = replace(variant, dimensions=(*variant.dimensions, ("InstanceId", "i")))
    assert resources([variant, instance, ServerBlock("http://prometheus"), component]) == [
        "endpoint/demo/variant/AllTraffic",
        "inference-component/c",
    ]


@pytest.mark.parametrize(
    ("changed", "active"),
    [
        ({}, True),
        ({"SuspendedState": SUSPENDED}, False),
        ({"SuspendedState": {**SUSPENDED, "DynamicScalingInSuspended": False}}, True),
        ({"SuspendedState": {**SUSPENDED, "ScheduledScalingSuspended": False}}, False),
        ({"MinCapacity": 1, "MaxCapacity": 1}, False),
    ],
)
def test_scaling_is_active_where_the_number_may_change(one: Scaled, changed: dict[str, Any], active: bool) -> None:
    one.scaling.register_scalable_target(**{**VARIANT, **changed})
    said: list[str] = []
    found = active_scaling(BLOCKS, said.append)
    assert [re.findall(r"demo/variant/AllTraffic \(policy thirty-a-second; 1 to 3\)", each) for each in found] == (
        [["demo/variant/AllTraffic (policy thirty-a-second; 1 to 3)"]] if active else []
    )
    assert all("--suspend-scaling" in each for each in found)
    made = active_scaling(BLOCKS, said.append, made=True)
    assert [each.endswith("Let endpoint_factory create it without scaling.") for each in made] == [True] * active
    assert said == []


def test_nobody_is_asked_of_an_endpoint_that_is_not_named(tmp_path: Path) -> None:
    assert active_scaling([ServerBlock("http://prometheus")], pytest.fail) == []
    with pytest.raises(BenchmarkError, match="--suspend-scaling needs an --endpoint-config"):
        suspended_scaling([], tmp_path, print).__enter__()


def test_who_may_not_ask_is_reported_and_does_not_suspend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_APPLICATION_AUTO_SCALING", "http://127.0.0.1:9")
    said: list[str] = []
    assert active_scaling(BLOCKS, said.append) == []
    assert "It is not known whether the endpoint scales during the search: " in said[0]
    with pytest.raises(BenchmarkError, match="--suspend-scaling: "):
        suspended_scaling(BLOCKS, tmp_path, print).__enter__()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.process
@pytest.mark.parametrize(
    ("number", "reported_it"),
    [
        (signal.SIGKILL, "The keeper process was killed; this command restores everything instead."),
        (signal.SIGTERM, "The keeper process was stopped while it was needed, and restored everything."),
    ],
)
def test_a_keeper_that_is_ended_leaves_nothing_behind(
    one: Scaled, tmp_path: Path, number: int, reported_it: str
) -> None:
    said: list[str] = []
    with suppress(ZeroDivisionError), suspended_scaling(BLOCKS, tmp_path, said.append) as reported:
        assert one.state == SUSPENDED
        written = json.loads((tmp_path / NAME).read_text())
        (held,) = written["entries"]
        assert held["state"] == "held"
        assert held["undo"]["parameters"] == {**VARIANT, "SuspendedState": BEFORE}
        keeper = psutil.Process(written["who"]["process"])
        keeper.send_signal(number)
        await_end(keeper)
        assert one.state == (SUSPENDED if number == signal.SIGKILL else BEFORE)
        raise ZeroDivisionError
    assert one.state == BEFORE
    assert reported is not None
    assert reported.put_back
    assert [each.state for each in read(tmp_path)] == ["undone"]
    assert said == [
        "Suspended for the search: endpoint/demo/variant/AllTraffic (policy thirty-a-second; 1 to 3).",
        reported_it,
        "scaling of endpoint/demo/variant/AllTraffic: is as it was before.",
    ]


@pytest.mark.process
@pytest.mark.parametrize("with_keeper", [False, True])
def test_a_command_that_is_killed_leaves_nothing_behind(
    one: Scaled, tmp_path: Path, with_keeper: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "search"
    folder.mkdir()
    with search(one.endpoint, folder) as program:
        assert program.stdout is not None
        assert b"Suspended" in program.stdout.readline()
        keeper = keeper_of(program)
        assert keeper is not None
        if with_keeper:
            keeper.kill()
        program.kill()
    await_end(keeper)
    if with_keeper:
        assert one.state == SUSPENDED
        assert cli.main(["endpoints", "clean", str(tmp_path)]) == 0
        assert capsys.readouterr().out == "search: scaling of endpoint/demo/variant/AllTraffic: is as it was before.\n"
    assert one.state == BEFORE
    assert cli.main(["endpoints", "clean", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"Nothing is left to restore in {tmp_path}.\n"


@pytest.mark.process
def test_a_search_of_an_endpoint_that_scales_is_refused_or_suspends_that(
    one: Scaled, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def find(_question: object, waves: Waves) -> CapacityResult:
        assert one.state == SUSPENDED
        assert (waves.folder / NAME).is_file()
        return searched()

    monkeypatch.setattr("server_capacity.experiments.capacity.run.find_capacity", find)
    monkeypatch.setattr("inference_benchmarker.cli.capacity.capacity.draw_capacity", lambda *_: None)
    config, output = tmp_path / "variant.json", tmp_path / "output"
    config.write_text(json.dumps([cloudwatch_block(INSTANCES, {"CPUUtilization": ["Average"]}, endpoint="demo")]))
    search = ["capacity", "--factories-file", str(demo_factories()), "--slo", "p99<1s", "--output-dir", str(output)]
    assert cli.main([*search, "--endpoint-config", str(config)]) == 2
    assert capsys.readouterr().err.startswith("benchmark: It would scale during the search: endpoint/demo/")
    assert cli.main([*search, "--suspend-scaling"]) == 2
    assert "--suspend-scaling needs --endpoint-config FILE" in capsys.readouterr().err
    assert not output.exists()
    assert cli.main([*search, "--endpoint-config", str(config), "--suspend-scaling", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["suspended"]["put_back"]
    (folder,) = output.iterdir()
    assert json.loads((folder / "capacity.json").read_text())["suspended"]["put_back"]
    assert one.state == BEFORE


def test_what_cannot_be_put_back_is_printed_to_be_pasted(
    one: Scaled, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is touched in another account, as with the credentials of another profile."""
    parameters = {**VARIANT, "SuspendedState": SUSPENDED}
    undo = Call("application-autoscaling", "register_scalable_target", parameters, "us-1", one.endpoint.url)
    with CleanupFile.taken(tmp_path) as cleanup:
        cleanup.hold("scaling", undo, "another")
        assert cli.main(["endpoints", "clean", str(tmp_path)]) == 1
    assert "a running process holds cleanup.json" in capsys.readouterr().out
    reason = "it was changed in AWS account another, but these credentials belong to 123456789012"
    for is_there in (True, False):
        if not is_there:
            assert one.state == BEFORE
            one.scaling.deregister_scalable_target(**VARIANT)
        assert cli.main(["endpoints", "clean", str(tmp_path)]) == 1
        text = f"could NOT be put back: {reason}. By hand:\n  aws application-autoscaling register-scalable-target "
        assert text in capsys.readouterr().out
    monkeypatch.setattr(performing, "account_of_credentials", lambda _: "another")
    assert cli.main(["endpoints", "clean", str(tmp_path)]) == 0
    assert "is gone, so there is nothing to restore" in capsys.readouterr().out


def test_nothing_is_removed_in_another_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """There it would not be found, and be taken for gone."""
    monkeypatch.setattr(performing, "account_of_credentials", lambda _: "here")
    call = Call("sagemaker", "delete_model", {"ModelName": "a-model"}, "us-east-1")
    with pytest.raises(
        NotDoneError, match="changed in AWS account another, but these credentials belong to here"
    ) as no:
        perform_undo(call, "another")
    assert no.value.final
    with pytest.raises(GoneError):
        perform_undo(call, "here")


def test_nothing_is_called_at_another_address(one: Scaled, monkeypatch: pytest.MonkeyPatch) -> None:
    """As from a shell whose settings lead to AWS, where nothing of that name is, or something of somebody's."""
    call = placed(DEREGISTER)
    assert call.endpoint_url == one.endpoint.url
    monkeypatch.setenv("AWS_ENDPOINT_URL_APPLICATION_AUTO_SCALING", "http://127.0.0.1:9")
    of_aws = "https://application-autoscaling.us-east-1.amazonaws.com"
    assert client_of(replace(call, endpoint_url=of_aws)).meta.endpoint_url == of_aws
    perform_undo(call, "123456789012")
    assert one.scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"] == []


def test_what_a_simulator_made_is_gone_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its address is not asked for long, nor any other one; a tunnel to AWS that is closed is no simulator."""
    call = replace(DEREGISTER, endpoint_url="http://127.0.0.1:9")
    with CleanupFile.taken(tmp_path) as cleanup:
        cleanup.hold("model", call, "123456789012")
    assert cli.main(["endpoints", "clean", str(tmp_path)]) == 0
    assert "model: is gone, so there is nothing to remove." in capsys.readouterr().out
    with pytest.raises(NotDoneError, match="these credentials belong to 123456789012"):
        perform_undo(call, "210987654321")


@pytest.mark.parametrize(("address", "account"), [(True, None), (False, "123456789012")])
def test_what_was_made_nobody_knows_where_is_not_called(
    one: Scaled, tmp_path: Path, address: bool, account: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    call = replace(DEREGISTER, endpoint_url=one.endpoint.url if address else None)
    with CleanupFile.taken(tmp_path) as cleanup:
        cleanup.hold("model", call, account)
        cleanup.hold("file", CommandLine((sys.executable, "-c", "")), None)
    assert cli.main(["endpoints", "clean", str(tmp_path)]) == 1
    reported = capsys.readouterr().out
    assert "model: could NOT be removed: the AWS account or URL in which it was created is not known." in reported
    assert "file: is removed." in reported


def test_a_file_that_is_not_trusted_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / NAME).write_text("{}")
    assert cli.main(["endpoints", "clean", str(tmp_path)]) == 2
    assert cli.main(["endpoints", "clean", str(tmp_path / "nowhere")]) == 2
    assert cli.main(["endpoints", "wipe"]) == 2
    stored = capsys.readouterr()
    assert FOREIGN in stored.out
    assert "is not a folder" in stored.err


@pytest.mark.slow
@pytest.mark.process
def test_motos_scaling_is_suspended_and_put_back_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two variants; one has a schedule and nothing that it could do but by that."""
    other = {**VARIANT, "ResourceId": "endpoint/demo/variant/Other"}
    (first,) = BLOCKS
    second = replace(first, dimensions=(("EndpointName", "demo"), ("VariantName", "Other")))

    def states() -> list[dict[str, bool]]:
        targets = scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]
        return [each["SuspendedState"] for each in sorted(targets, key=lambda target: str(target["ResourceId"]))]

    with moto_server() as url:
        for service in ("APPLICATION_AUTO_SCALING", "STS"):
            monkeypatch.setenv(f"AWS_ENDPOINT_URL_{service}", url)
        scaling = boto3.client("application-autoscaling")
        register(scaling)
        scaling.register_scalable_target(**other, MinCapacity=2, MaxCapacity=2, SuspendedState=BEFORE)
        action = {"ScalableTargetAction": {"MinCapacity": 1}, "Schedule": "rate(1 hour)"}
        scaling.put_scheduled_action(**other, **action, ScheduledActionName="nightly")
        said: list[str] = []
        with suspended_scaling([first, second], tmp_path, said.append):
            assert states() == [SUSPENDED, SUSPENDED]
        assert states() == [BEFORE, BEFORE]
        assert "endpoint/demo/variant/Other (schedule nightly; 2 to 2)" in said[1]
        with CleanupFile.taken(tmp_path) as cleanup:
            cleanup.entries[:] = [replace(each, state="held", account="another") for each in cleanup.entries]
            assert not restore(cleanup)


def test_a_command_line_is_run_without_a_shell(tmp_path: Path) -> None:
    perform(CommandLine((sys.executable, "-c", "import sys; open(sys.argv[1], 'w')", str(tmp_path / "a; b"))))
    assert [path.name for path in tmp_path.iterdir()] == ["a; b"]
    with pytest.raises(NotDoneError, match="it ended with 3: broken"):
        perform(CommandLine((sys.executable, "-c", "import sys; print('broken', file=sys.stderr); sys.exit(3)")))
    with pytest.raises(NotDoneError, match="it could not be started"):
        perform(CommandLine((str(tmp_path / "nothing"),)))
