"""Kills at random instants of a made endpoint's life: of the command, the keeper, the factory's process, or several.

The factory is the shipped example for SageMaker and a process that sleeps; it is made in the embedded endpoint's
control plane, where that takes a second, and in moto's, in turn. Afterwards no model, configuration, endpoint or
process may be there: by itself where any of the three lived on, and after `benchmark endpoints clean` where none did.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import boto3
import psutil

from inference_benchmarker.embedded.running import EndpointConfig, start
from tests.made import left_running, program
from tests.moto_server import moto_server
from tests.performance.figures import Figure, Program, exactly
from tests.shipped import FACTORIES

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS_A_KILL = 4.0
PATIENCE_S = 60.0
BEYOND = 1.2
"""The last instant, as a multiple of an undisturbed life."""

CREATE_S = 1.0
HELD_S = 0.5
VICTIMS = (
    *(("command",), ("keeper",), ("factory",), ("command", "keeper"), ("command", "factory"), ("keeper", "factory")),
    *(("command", "keeper", "factory"), ("factory", "keeper", "command"), ("Ctrl-C",), ("SIGTERM to the keeper",)),
)
"""What is killed, in this order."""


@dataclass
class Counts:
    """What the kills met, and left."""

    kills: int = 0
    made: int = 0
    resources: int = 0
    processes: int = 0
    cleaned: int = 0
    after_cleaning: int = 0
    seconds: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Cloud:
    """A control plane: a client of it, and the environment in which boto3 finds it."""

    sagemaker: Any
    environment: dict[str, str]

    def names(self) -> set[str]:
        """Of all that somebody made here; what is being deleted is waited for."""
        endpoints = self._endpoints()
        while any(each["EndpointStatus"] == "Deleting" for each in endpoints):
            time.sleep(0.05)
            endpoints = self._endpoints()
        models, configs = self.sagemaker.list_models()["Models"], self.sagemaker.list_endpoint_configs()
        return {
            *(f"endpoint {each['EndpointName']}" for each in endpoints),
            *(f"config {each['EndpointConfigName']}" for each in configs["EndpointConfigs"]),
            *(f"model {each['ModelName']}" for each in models),
        }

    def _endpoints(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.sagemaker.list_endpoints()["Endpoints"]
        return [each for each in found if each["EndpointName"] != "demo"]


def figures(seconds: float) -> list[Figure]:
    """As many kills as take about so long, a seed for all."""
    chance, counts = random.Random(17), Counts()
    lives: list[float] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        factories = _factories(folder)
        clouds = [stack.enter_context(cloud()) for cloud in (_embedded, _moto)]
        for cloud in clouds:
            begin = time.monotonic()
            with _program(cloud, folder / f"orderly{len(lives)}", factories) as command:
                command.wait()
            lives.append(time.monotonic() - begin)
        for number in range(round(seconds / SECONDS_A_KILL)):
            cloud, life = clouds[number % 2], lives[number % 2]
            victims = VICTIMS[number // 2 % len(VICTIMS)]
            _one(cloud, folder / f"{number}", factories, victims, counts, at=chance.uniform(0, BEYOND * life))
    return [
        Figure("kills", counts.kills),
        Figure("of them while something was made", counts.made),
        Figure("resources left though one of the three lived", counts.resources, "", exactly(0)),
        Figure("processes left though one of the three lived", counts.processes, "", exactly(0)),
        Figure("all three were killed, and endpoints clean removed", counts.cleaned),
        Figure("left after endpoints clean", counts.after_cleaning, "", exactly(0)),
        Figure("kill to the end of all that lived, longest", max(counts.seconds), "s"),
        Figure("a life that nobody disturbs, mean", median(lives), "s"),
    ]


@contextmanager
def _embedded() -> Iterator[Cloud]:
    with start(EndpointConfig(service="none", create_s=CREATE_S)) as endpoint:
        yield Cloud(_client(endpoint.url), endpoint.aws_environment)


@contextmanager
def _moto() -> Iterator[Cloud]:
    with moto_server() as url:
        keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "a", "AWS_DEFAULT_REGION": "us-east-1"}
        yield Cloud(_client(url), {"AWS_ENDPOINT_URL": url, **keys})


def _client(url: str) -> Any:
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "a"}
    return boto3.client("sagemaker", region_name="us-east-1", endpoint_url=url, **keys)


def _factories(folder: Path) -> Path:
    """The example, which starts a process as well."""
    source = (FACTORIES / "sagemakerai_realtime/factories_with_endpoint.py").read_text()
    sleeping = 'import subprocess, sys; subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])'
    begin = '    sagemaker = boto3.client("sagemaker")'
    path = folder / "factories_killed.py"
    path.write_text(source.replace("ASK_EVERY_S = 5", "ASK_EVERY_S = 0.1").replace(begin, f"    {sleeping}\n{begin}"))
    return path


def _program(cloud: Cloud, folder: Path, factories: Path) -> subprocess.Popen[bytes]:
    folder.mkdir()
    return program(folder, factories, [], cloud.environment, held_s=HELD_S)


def _one(cloud: Cloud, folder: Path, factories: Path, victims: tuple[str, ...], counts: Counts, *, at: float) -> None:
    """One program, of which something is killed so many seconds after its start."""
    with _program(cloud, folder, factories) as command:
        assert command.stdout is not None
        time.sleep(at)
        counts.kills += 1
        counts.made += bool(cloud.names())
        killed = time.monotonic()
        survivors = _kill(command, victims)
        command.stdout.read()
        command.wait()
    _await_end(survivors)
    counts.seconds.append(time.monotonic() - killed)
    resources, processes = cloud.names(), left_running(folder)
    if (resources or processes) and not survivors and command.returncode < 0:
        counts.cleaned += 1
        clean = [sys.executable, "-m", "inference_benchmarker.cli", "endpoints", "clean", str(folder)]
        environment = {**os.environ, **cloud.environment}
        done = subprocess.run(clean, env=environment, capture_output=True, text=True, check=False)
        resources, processes = cloud.names(), left_running(folder)
        counts.after_cleaning += len(resources) + len(processes) + (done.returncode != 0)
    else:
        counts.resources += len(resources)
        counts.processes += len(processes)
    if resources or processes:
        print(victims, at, command.returncode, survivors, resources, processes, flush=True)
    _forget(cloud, resources)


def _kill(command: subprocess.Popen[bytes], victims: tuple[str, ...]) -> list[psutil.Process]:
    """Kill the victims that are there, and give the keeper and the factory's process as far as they live on."""
    found: dict[str, psutil.Process] = {}
    with suppress(psutil.Error, IndexError):
        found["keeper"] = psutil.Process(command.pid).children()[0]
        found["factory"] = found["keeper"].children()[0]
    for victim in victims:
        if victim == "command":
            command.kill()
        elif victim == "Ctrl-C":
            command.send_signal(signal.SIGINT)
        elif victim in found:
            with suppress(psutil.Error):
                found[victim].kill()
    if "SIGTERM to the keeper" in victims and "keeper" in found:
        found["keeper"].terminate()
    return [process for name, process in found.items() if name not in victims and process.is_running()]


def _await_end(processes: list[psutil.Process]) -> None:
    """Until these have ended; who stands still is known by what it leaves."""
    deadline = time.monotonic() + PATIENCE_S
    for process in processes:
        with suppress(psutil.Error):
            while process.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
                time.sleep(0.02)


def _forget(cloud: Cloud, resources: set[str]) -> None:
    """Take away what one kill left, so that the next one does not count it."""
    deletes = {"endpoint": "EndpointName", "config": "EndpointConfigName", "model": "ModelName"}
    for kind, name in (each.split() for each in resources):
        operation = "delete_endpoint_config" if kind == "config" else f"delete_{kind}"
        getattr(cloud.sagemaker, operation)(**{deletes[kind]: name})


PROGRAM = Program("Kills in the life of a made endpoint", figures, 800.0, 40.0)

if __name__ == "__main__":
    PROGRAM.main()
