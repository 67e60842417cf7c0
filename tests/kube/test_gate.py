"""The regression gate of ``delivery/nightly.yaml``, by the commands of the page, with a load of its own."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Any

import kubernetes_validate
import pytest
import yaml

from inference_benchmarker.engine.pods.pods import IMAGE
from tests.case import case
from tests.conftest import ROOT
from tests.engine.pods.rules import VERSIONS, violations
from tests.kube.kubectl import PATIENCE_S
from tests.performance.stamp_server import StampServer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kube.cluster import Cluster
    from tests.kube.kubectl import Kubectl

NIGHTLY = ROOT / "delivery" / "nightly.yaml"
PAGE = ROOT / "docs/how-to/kubernetes.md"
LOAD = ["--factories-file=my_endpoint.py", "--concurrency=1", "--obs-time=1", "--workers=1"]
AS_JSON = "--dry-run=client --output=json | kubectl create --filename=-"
"""kubectl itself sends a Job of a CronJob as Protocol Buffers, which the tests' server does not read."""

FACTORIES = """
import os
import urllib.request


def invoke_factory():
    def invoke(payload):
        headers = {"X-Api-Key": os.environ["TOKEN"]}
        with urllib.request.urlopen(urllib.request.Request("URL", headers=headers)) as answer:
            return answer.read()

    return invoke


def payload_factory():
    return {"pre_computed": True, "input": [1]}
"""


def gate() -> tuple[dict[str, Any], dict[str, Any]]:
    """The claim and the CronJob."""
    claim, cron_job = yaml.safe_load_all(NIGHTLY.read_text())
    return claim, cron_job


def test_kubernetes_takes_the_gate_and_so_does_its_strictest_level() -> None:
    for version in VERSIONS:
        for made in gate():
            with case(version, made["kind"]):
                kubernetes_validate.validate(made, version, strict=True)
    pod = gate()[1]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert list(violations(pod)) == []
    assert pod["containers"][0]["image"].endswith(f"/{IMAGE}")


def block(command: str) -> str:
    """The commands of the page that are typed after each other, of which this is one."""
    (found,) = [each for each in re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL) if command in each]
    assert isinstance(found, str)
    return found


class Gate:
    """A user who has created it with other flags, in a folder with a factories file."""

    def __init__(self, kubectl: Kubectl, folder: Path) -> None:
        self.kubectl, self.folder = kubectl, folder

    def create(self, url: str) -> None:
        """As the page says."""
        claim, cron_job = gate()
        cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["args"] = LOAD
        (self.folder / "nightly.yaml").write_text(yaml.safe_dump_all([claim, cron_job]))
        (self.folder / "my_endpoint.py").write_text(FACTORIES.replace("URL", url))
        self._run(block("nightly.yaml"))

    def exit_code(self, number: int) -> str:
        """The exit code of a Job that a pipeline makes, as the page reads it."""
        script = block("--from=cronjob").replace("--from=cronjob/load-gate", f"--from=cronjob/load-gate {AS_JSON}")
        return self._run(script.replace("gate-1", f"gate-{number}")).splitlines()[-1]

    def send_to(self, url: str) -> None:
        """Give the same waves another endpoint."""
        text = FACTORIES.replace("URL", url)
        self.kubectl("delete", "configmap", "load-gate")
        (self.folder / "my_endpoint.py").write_text(text)
        self.kubectl("create", "configmap", "load-gate", f"--from-file={self.folder / 'my_endpoint.py'}")

    def _run(self, script: str) -> str:
        done = subprocess.run(
            ["sh", "-e", "-c", script],
            cwd=self.folder,
            env=self.kubectl.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=2 * PATIENCE_S,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.mark.slow
@pytest.mark.process
def test_a_gate_passes_its_first_time_and_fails_once_the_endpoint_is_slower(
    kubectl: Kubectl, cluster: Cluster, tmp_path: Path
) -> None:
    pipeline = Gate(kubectl, tmp_path)
    with StampServer(address=cluster.address, delay_ms=20) as server:
        pipeline.create(server.url)
        assert pipeline.exit_code(1) == "0"
        assert len(server.log()) > 0
    with StampServer(address=cluster.address, delay_ms=100) as slower:
        pipeline.send_to(slower.url)
        assert pipeline.exit_code(2) == "1"
    assert "p50" in kubectl("logs", "job/gate-2")
    kubectl("delete", "job", "gate-1", "gate-2")
    assert kubectl("get", "pvc", "--output=name") == "persistentvolumeclaim/load-gate\n"
