"""Waves from pods, made by ``benchmark manifests`` and the commands of the page, as a new user types them."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.version import __version__
from tests.case import case
from tests.conftest import ROOT
from tests.kube.conftest import wait_until
from tests.kube.kubectl import PATIENCE_S
from tests.performance.stamp_server import StampServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.kube.cluster import Cluster
    from tests.kube.kubectl import Kubectl

pytestmark = pytest.mark.process

PAGE = ROOT / "docs/how-to/kubernetes.md"
MEASURED = (0, 3)  # a busy machine makes a wave INVALID
RATE = 100


@pytest.fixture
def server(cluster: Cluster) -> Iterator[StampServer]:
    with StampServer(address=cluster.address) as started:
        yield started


class Wave:
    """A wave from pods, in a folder with what belongs to it: wave.yaml, and the keys."""

    def __init__(
        self, kubectl: Kubectl, folder: Path, url: str, *flags: str, seconds: int = 60, name: str = "load"
    ) -> None:
        self.kubectl, self.folder, self.name = kubectl, folder, name
        folder.mkdir(exist_ok=True)
        line = [sys.executable, "-m", "inference_benchmarker.cli", "manifests", "--keys-dir", "load-keys", url]
        line += [f"--client-rps={RATE}", f"--obs-time={seconds}", f"--job-name={name}", *flags]
        done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        self.manifest = folder / "wave.yaml"
        self.manifest.write_text(done.stdout)
        self.said = done.stdout + done.stderr

    def script(self, *commands: str) -> subprocess.CompletedProcess[str]:
        """Run lines of a shell where the first ones of the page have been run."""
        first = "first=batch.kubernetes.io/job-name=load,batch.kubernetes.io/job-completion-index=0"
        return subprocess.run(
            ["sh", "-e", "-c", "\n".join((first, *commands))],
            cwd=self.folder,
            env=self.kubectl.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=2 * PATIENCE_S,
        )

    def start(self) -> None:
        """Create all of it, and let it go."""
        done = self.script(*first_lines(self.manifest.read_text())[:3])
        assert done.returncode == 0, done.stderr

    def pod(self, index: int) -> str:
        """The name of the pod of an index."""
        found = self.kubectl("get", "pods", "--selector", f"job-name={self.name},{INDEX}={index}", "--output=name")
        return found.strip().removeprefix("pod/")

    def summary(self) -> dict[str, Any]:
        """The summary of the wave, once it is there."""
        path = "cat /runs/*/summary.json"
        wait_until(lambda: self.kubectl.run("exec", self.pod(0), "--", "sh", "-c", path).returncode == 0)
        found = json.loads(self.kubectl("exec", self.pod(0), "--", "sh", "-c", path))
        assert isinstance(found, dict)
        return found

    def log(self) -> str:
        """What the first pod has printed when it ends."""
        with self.kubectl.start("logs", "--follow", "--tail=-1", self.pod(0)) as follower:
            return follower.communicate(timeout=2 * PATIENCE_S)[0]

    def end(self) -> None:
        """Remove the Job and its Secret; nothing is left of it as soon as its pods have ended."""
        self.kubectl("exec", self.pod(0), "--", "touch", "/runs/fetched")
        self.kubectl("delete", f"--filename={self.manifest}")
        self.kubectl("delete", "secret", "load")
        wait_until(lambda: self.kubectl("get", "all,secrets,configmaps", "--output=name") == "")


INDEX = "batch.kubernetes.io/job-completion-index"


def first_lines(text: str) -> list[str]:
    """The commands that the first lines of the objects tell to type."""
    head = itertools.takewhile(lambda line: line.startswith("#"), text.splitlines())
    said = [line.removeprefix("#   ").partition("     (")[0] for line in head if line.startswith("#   ")]
    return [line.replace("THIS_FILE", "wave.yaml") for line in said]


def block(command: str) -> list[str]:
    """The commands of the page that are typed after each other, of which this is one."""
    (found,) = [each for each in re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL) if command in each]
    assert isinstance(found, str)
    return found.splitlines()


def begun(server: StampServer) -> None:
    """Wait until requests arrive from the pods."""
    wait_until(lambda: len(server.log()) >= RATE)


@pytest.mark.slow
def test_the_commands_of_the_page_send_a_wave_and_bring_its_results_home(
    kubectl: Kubectl, cluster: Cluster, server: StampServer, tmp_path: Path
) -> None:
    wave = Wave(kubectl, tmp_path, server.url, "--pods=3", "--workers=3", seconds=2)
    first, fetch, end = map(block, ("kubectl patch job", "tar c -C /runs", "kubectl delete -f"))
    assert first_lines(wave.manifest.read_text()) == first
    # Its last line follows the log for as long as the results are kept; a user reads them meanwhile.
    done = wave.script(*first[:-1])
    assert done.returncode == 0, done.stderr
    with kubectl.start("logs", "--follow", "--tail=-1", wave.pod(0)) as follower:
        summary = wave.summary()
        fetched = wave.script(*fetch)
        said, _ = follower.communicate(timeout=PATIENCE_S)
    assert fetched.returncode == 0, fetched.stderr
    sums = [line.split()[0] for line in fetched.stdout.splitlines() if line.endswith(("-", "runs.tar"))]
    assert len(sums) == 2
    assert sums[0] == sums[1]
    (run,) = tmp_path.glob("*_benchmark")
    assert json.loads((run / "summary.json").read_text()) == summary
    assert (summary["ledger"]["ok"], len(server.log())) == (2 * RATE, 2 * RATE)
    assert [(host["name"], host["lost"]) for host in summary["hosts"]] == [(f"load-{n}", None) for n in (1, 2, 3)]
    assert "RESULTS" in said
    ended = wave.script(*end)
    assert ended.returncode == 0, ended.stderr
    assert [int(code) for code in re.findall(r"^\d+", ended.stdout)] == [summary["exit_code"]]
    assert summary["exit_code"] in MEASURED
    assert kubectl("get", "all,secrets,configmaps", "--output=name") == ""


@pytest.mark.slow
def test_secrets_are_in_the_secret_only(
    kubectl: Kubectl, cluster: Cluster, server: StampServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = "v4lue-of-the-endpoints-key"
    monkeypatch.setenv("ENDPOINT_KEY", value)
    wave = Wave(kubectl, tmp_path, server.url, "--pods=1", "--pass-env=ENDPOINT_KEY", "--header=X: $ENDPOINT_KEY")
    keys = [json.loads(path.read_text())["own"]["secret"] for path in (tmp_path / "load-keys").glob("*.json")]
    wave.start()
    begun(server)
    shown = wave.said + kubectl("get", "all,configmaps,events", "--output=yaml") + kubectl("describe", "pods,jobs")
    shown += kubectl("logs", wave.pod(0)) + kubectl("exec", wave.pod(0), "--", "ps", "ax", "--format=args")
    assert len(keys) == 2
    assert [secret for secret in (value, *keys) if secret in shown] == []
    kubectl("delete", "job,service", "load", "--grace-period=1")
    kubectl("delete", "secret", "load")


def lost_by_deletion(wave: Wave, cluster: Cluster, space: str) -> None:
    wave.kubectl("delete", "pod", wave.pod(2), "--grace-period=1", "--wait=false")


def lost_by_eviction(wave: Wave, cluster: Cluster, space: str) -> None:
    cluster.evict(space, wave.pod(2))


def lost_by_memory(wave: Wave, cluster: Cluster, space: str) -> None:
    cluster.kill_for_memory(space, wave.pod(2))


def lost_by_its_node(wave: Wave, cluster: Cluster, space: str) -> None:
    cluster.lose_node(wave.kubectl("get", "pod", wave.pod(2), "--output=jsonpath={.spec.nodeName}"))


def lost_by_silence(wave: Wave, cluster: Cluster, space: str) -> None:
    """All its processes stop for longer than its lease."""
    cluster.freeze(space, wave.pod(2), 30)


LOSSES = [lost_by_deletion, lost_by_eviction, lost_by_memory, lost_by_its_node, lost_by_silence]


@pytest.mark.slow
@pytest.mark.parametrize("lose", LOSSES)
def test_a_pod_that_is_lost_makes_the_wave_invalid_and_the_others_go_on(
    kubectl: Kubectl, cluster: Cluster, server: StampServer, tmp_path: Path, lose: Any
) -> None:
    space = kubectl("config", "view", "--minify", "--output=jsonpath={..namespace}")
    wave = Wave(kubectl, tmp_path, server.url, "--pods=2", seconds=16)
    wave.start()
    begun(server)
    lose(wave, cluster, space)
    summary = wave.summary()
    one, two = summary["hosts"]
    assert (one["lost"], two["lost"] is not None, summary["exit_code"]) == (None, True, 3)
    assert "host_lost" in [finding["code"] for finding in summary["findings"]]
    assert one["sent"] == 16 * RATE // 2
    assert len(server.log()) >= summary["ledger"]["ok"]
    wave.end()


@pytest.mark.slow
def test_a_first_pod_that_is_lost_ends_the_others(
    kubectl: Kubectl, cluster: Cluster, server: StampServer, tmp_path: Path
) -> None:
    space = kubectl("config", "view", "--minify", "--output=jsonpath={..namespace}")
    wave = Wave(kubectl, tmp_path, server.url, "--pods=2", seconds=60)
    wave.start()
    begun(server)
    cluster.kill_for_memory(space, wave.pod(0))
    wait_until(lambda: not {each["status"]["phase"] for each in kubectl.object("pods")["items"]} & {"Running"})
    sent = len(server.log())
    kubectl("wait", "--for=condition=Failed", "job/load")
    assert kubectl.object("job", "load")["status"]["failedIndexes"] == "0"
    assert len(server.log()) == sent
    kubectl("delete", "job,service,secret", "load")


@pytest.mark.slow
def test_pods_that_do_not_come_are_named_and_no_load_is_sent(
    kubectl: Kubectl, cluster: Cluster, server: StampServer, tmp_path: Path
) -> None:
    def no_image() -> str:
        cluster.miss_image("gone")
        return 'Failed to pull image "gone:1"'

    def no_room() -> str:
        cluster.fill_nodes("5")  # for two pods of two cores on each of three nodes, and there are eight
        return "Insufficient cpu"

    rows = {"no-image": (no_image, ("--pods=1", "--pod-image=gone:1")), "no-room": (no_room, ("--pods=7",))}
    for name, (break_it, flags) in rows.items():
        with case(name):
            why = break_it()
            wave = Wave(kubectl, tmp_path / name, server.url, *flags, "--join-timeout=15", seconds=1)
            wave.start()
            wait_until(lambda why: why in kubectl("get", "events"), why)
            if name == "no-room":
                assert "load-7: it did not join" in wave.log()
                ended = kubectl.object("pod", wave.pod(0))["status"]["containerStatuses"][0]["state"]["terminated"]
                assert ended["exitCode"] == 2
            kubectl("delete", "job,service,secret", "load", "--grace-period=1")
            cluster.mend()
    assert len(server.log()) == 0


@pytest.mark.slow
def test_a_secret_that_is_deleted_early_is_missed_before_the_start_only(
    kubectl: Kubectl, cluster: Cluster, server: StampServer, tmp_path: Path
) -> None:
    wave = Wave(kubectl, tmp_path, server.url, "--pods=1", seconds=4)
    create, made, resumed = first_lines(wave.manifest.read_text())[:3]
    assert wave.script(made, resumed).returncode == 0
    wait_until(lambda: 'secret "load" not found' in kubectl("get", "events"))
    assert wave.script(create).returncode == 0
    begun(server)
    kubectl("delete", "secret", "load")
    assert wave.summary()["ledger"]["ok"] == 4 * RATE == len(server.log())
    assert wave.script(create).returncode == 0
    wave.end()


@pytest.mark.slow
def test_an_image_of_another_version_is_refused_with_both_before_any_load(
    kubectl: Kubectl, cluster: Cluster, server: StampServer, tmp_path: Path
) -> None:
    wave = Wave(kubectl, tmp_path, server.url, "--pods=1", seconds=1)
    wave.manifest.write_text(
        re.sub(
            rf"(?<=!= ){re.escape(__version__)}|(?<=for ){re.escape(__version__)}", "99.1", wave.manifest.read_text()
        )
    )
    wave.start()
    fetched = subprocess.run(
        [sys.executable, "-m", "inference_benchmarker.cli", "kubernetes", "fetch", "load"],
        cwd=tmp_path,
        env=kubectl.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * PATIENCE_S,
    )
    assert fetched.returncode == 2, fetched.stderr
    assert f"The image has version {__version__} of this tool, and its Job is for 99.1" in fetched.stderr
    assert len(server.log()) == 0
    kubectl("delete", "secret", "load", "--ignore-not-found")
    kubectl("delete", "service", "load", "--ignore-not-found")


@pytest.mark.slow
def test_a_quota_of_cpu_is_told_in_the_report(
    kubectl: Kubectl, cluster: Cluster, server: StampServer, tmp_path: Path
) -> None:
    """An eighth of a core, for a rate that takes more."""
    wave = Wave(kubectl, tmp_path, server.url, "--pods=1", "--client-rps=1000", seconds=4)
    wave.manifest.write_text(wave.manifest.read_text().replace('cpu: "2"', 'cpu: "120m"'))
    wave.start()
    begun(server)
    told = json.dumps(wave.summary()["findings"])
    # On a busy machine both are so, and the others are told of first.
    assert re.search("The cgroup throttled load-1 for|Other programs on load-1 took the CPU", told), told
    wave.end()


@pytest.mark.slow
def test_two_waves_in_a_restricted_namespace_with_a_quota_send_what_each_was_asked_for(
    kubectl: Kubectl, cluster: Cluster, server: StampServer, tmp_path: Path
) -> None:
    namespace = kubectl("config", "view", "--minify", "--output=jsonpath={..namespace}")
    kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    kubectl("create", "quota", "all", "--hard=pods=4,requests.cpu=8,limits.cpu=8,limits.memory=16Gi")
    waves = [Wave(kubectl, tmp_path / name, server.url, "--pods=1", name=name, seconds=4) for name in "ab"]
    for wave in waves:
        wave.start()
    for wave in waves:
        assert wave.summary()["ledger"]["ok"] == 4 * RATE
        kubectl("exec", wave.pod(0), "--", "touch", "/runs/fetched")
    assert len(server.log()) == 2 * 4 * RATE
    kubectl("delete", "job,service,secret", "a", "b")
    assert kubectl("get", "all,secrets,configmaps", "--output=name") == ""
