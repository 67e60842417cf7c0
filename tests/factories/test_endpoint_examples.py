"""The examples that make their endpoint: judged by what the control plane, or the machine, has during and after it."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import boto3
import psutil
import pytest

from inference_benchmarker import created_resources
from inference_benchmarker.embedded.running import EndpointConfig, start
from inference_benchmarker.engine.endpoint.endpoint_factory import begin, make, remove
from inference_benchmarker.engine.endpoint.factories_file import load
from server_capacity.provisioning.performing import NotDoneError, check_call, perform_undo
from server_capacity.provisioning.undo import Call, undo_given
from tests.shipped import FACTORIES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KINDS = {
    "demo/factories_demo_endpoint": ("model", "endpoint_config", "endpoint"),
    "sagemakerai_realtime/factories_with_endpoint": ("model", "endpoint_config", "endpoint"),
    "sagemakerai_serverless/factories_serverless_with_endpoint": ("model", "endpoint_config", "endpoint"),
    "sagemakerai_inference_component/factories_component_with_endpoint": (
        *("endpoint_config", "endpoint", "inference_component"),
    ),
}
ALIKE = {"demo/factories_demo_endpoint", "sagemakerai_serverless/factories_serverless_with_endpoint"}
ANSWERED_S = 20.0


class Held:
    """Whoever gets what is created, as the keeper does."""

    run = "a-run"

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def hold(self, undo: Any) -> None:
        call = undo_given(undo, "us-east-1")
        assert isinstance(call, Call)
        check_call(call)
        self.calls.append(call)

    def undo(self) -> None:
        """Undo all, the last first; what is busy is tried again."""
        for call in reversed(self.calls):
            deadline = time.monotonic() + ANSWERED_S
            while time.monotonic() < deadline:
                try:
                    perform_undo(call, None)
                    break
                except NotDoneError as error:
                    if not error.busy:
                        raise
                    time.sleep(0.02)


@contextmanager
def holding() -> Iterator[Held]:
    held = Held()
    created_resources.use_holder(held)
    try:
        yield held
    finally:
        created_resources._holders.clear()


@pytest.fixture(scope="module")
def aws() -> Iterator[dict[str, str]]:
    """The environment in which the embedded endpoint is AWS."""
    with start(EndpointConfig(create_s=0.05, service_s=0.001)) as endpoint:
        yield {**endpoint.aws_environment, "BENCHMARK_DEMO_URL": endpoint.url}


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in ALIKE)) for name in KINDS])
def test_what_an_example_makes_serves_and_is_removed(
    name: str, aws: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in aws.items():
        monkeypatch.setenv(variable, value)
    path = tmp_path / "mine.py"
    path.write_text((FACTORIES / f"{name}.py").read_text().replace("ASK_EVERY_S = 5", "ASK_EVERY_S = 0.02"))
    sagemaker = boto3.client("sagemaker")
    with holding() as held:
        generator = begin(path, {})
        endpoint_name = make(path, generator)
        assert tuple(call.operation.removeprefix("delete_") for call in held.calls) == KINDS[name]
        arn = sagemaker.describe_endpoint(EndpointName=endpoint_name)["EndpointArn"]
        assert sagemaker.list_tags(ResourceArn=arn)["Tags"] == [{"Key": created_resources.RUN_TAG, "Value": "a-run"}]
        example = load(path, endpoint_name)
        assert example.payloads is not None
        assert example.invoke(example.payloads[0])
        remove(path, generator)
        held.undo()
    left = [
        *sagemaker.list_models()["Models"],
        *sagemaker.list_endpoint_configs()["EndpointConfigs"],
        *sagemaker.list_inference_components()["InferenceComponents"],
    ]
    assert left == []
    deadline = time.monotonic() + ANSWERED_S
    while len(sagemaker.list_endpoints()["Endpoints"]) > 1 and time.monotonic() < deadline:
        time.sleep(0.02)  # it is being deleted
    assert [each["EndpointName"] for each in sagemaker.list_endpoints()["Endpoints"]] == ["demo"]


@pytest.mark.process
def test_the_local_server_serves_as_many_workers_and_ends() -> None:
    path = FACTORIES / "local_server/factories_local_server.py"
    generator = begin(path, {"workers": 2, "env": {"OMP_NUM_THREADS": 1}})
    url = make(path, generator)
    alive = [each for each in psutil.Process().children() if each.status() != psutil.STATUS_ZOMBIE]
    (server,) = [each for each in alive if str(path) in each.cmdline()]
    assert server.environ()["OMP_NUM_THREADS"] == "1"
    assert server.cmdline()[-1] == "2"
    example = load(path, url)
    assert example.payloads is not None
    answers = [example.invoke(payload) for payload in example.payloads[:3]]
    assert len(set(answers)) == 3
    assert all(b"digest" in answer for answer in answers)
    remove(path, generator)
    assert not server.is_running()


@pytest.mark.process
def test_the_local_engine_gets_the_flags_that_are_varied_and_ends() -> None:
    path = FACTORIES / "local_server/factories_local_engine.py"
    generator = begin(path, {"max_num_seqs": 2, "block_size": 32, "env": {"OMP_NUM_THREADS": 1}})
    url = make(path, generator)
    alive = [each for each in psutil.Process().children() if each.status() != psutil.STATUS_ZOMBIE]
    (server,) = [each for each in alive if "--llm" in each.cmdline()]
    assert server.cmdline()[-4:] == ["--max-num-seqs", "2", "--block-size", "32"]
    assert server.environ()["OMP_NUM_THREADS"] == "1"
    example = load(path, url, canary_seed=0)
    assert len(set(map(json.dumps, example.canaries))) == 6
    *pieces, usage = example.invoke(example.canaries[0])
    assert (len(pieces), usage.tokens_out) == (128, 128)
    remove(path, generator)
    assert not server.is_running()
