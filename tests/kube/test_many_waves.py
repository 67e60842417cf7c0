"""Commands of many waves through the real kubectl: all of each is one Job, and what it found comes home."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest

from tests.kube.conftest import wait_until
from tests.mentions import mentions
from tests.performance.stamp_server import StampServer
from tests.proofs import planned
from tests.waves import open_plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench import Bench, Finished, Running
    from tests.kube.cluster import Cluster
    from tests.kube.kubectl import Kubectl

pytestmark = pytest.mark.process

SENDER = """
import urllib.request

URL = "{url}/"


def invoke_factory():
    def invoke(payload):
        with urllib.request.urlopen(URL) as answer:
            return answer.read()

    return invoke


def payload_factory():
    return {{"pre_computed": True, "input": [1]}}
"""
FILES = ("get", "all,secrets,configmaps", "--output=name")
RATE = 20
LOAD = ("--client-rps", RATE, "--obs-time", 1, "--warmup", 0)


class Scene:
    """A user in a folder beside an older one, and a server that the pods reach."""

    def __init__(self, bench: Bench, kubectl: Kubectl, server: StampServer) -> None:
        self.kubectl, self.server = kubectl, server
        self.folder = bench.folder()
        self._bench = bench
        (self.folder / "here").mkdir()
        (self.folder / "old").mkdir()
        for name in ("here/f.py", "old/f.py"):
            (self.folder / name).write_text(SENDER.format(url=server.url))

    def start(self, *words: object) -> Running:
        """Start a command, whose pods are two."""
        pods = () if words[0] == "kubernetes" else ("--kubernetes", "--pods", 1, "--job-name", "load")
        place, variables = self.folder / "here", self.kubectl.environment
        return self._bench.start(
            *words, *pods, "--output-dir", "home", factories=None, folder=place, environment=variables
        )

    def judge(self, finished: Finished, name: str) -> dict[str, Any]:
        """The answer: its exit code and its folder are those of the command, and nothing is left in the cluster."""
        (found,) = self.folder.glob(f"here/home/*/{name}")
        answer = json.loads(found.read_text())
        assert isinstance(answer, dict)
        assert finished.code == answer["exit_code"], finished.err
        said = finished.out + finished.err
        assert f"Folder: home/{found.parent.name}" in said
        assert mentions(said, "/runs", "/work") is False
        wait_until(lambda: self.kubectl(*FILES) == "")
        return answer

    def waves(self) -> list[dict[str, Any]]:
        """All waves that came home."""
        return [json.loads(path.read_text()) for path in self.folder.glob("here/home/*/**/summary.json")]


@pytest.fixture
def scene(bench: Bench, kubectl: Kubectl, cluster: Cluster) -> Iterator[Scene]:
    with StampServer(address=cluster.address) as server:
        yield Scene(bench, kubectl, server)


def test_a_and_b_are_one_job_and_their_comparison_is_made_here(scene: Scene) -> None:
    """Each side is asked once before its waves."""
    ab = ("ab", "../old/f.py", "f.py", *LOAD, "--repeats", 1, "--markdown", "ab.md", "--max-regression", "p99=1000%")
    finished = scene.start(*ab).finish()
    answer = scene.judge(finished, "ab.json")
    assert answer["what"] == {"A": "old/f.py", "B": "f.py"}
    waves = scene.waves()
    assert len(waves) == len(answer["waves"]) >= 2
    assert {host["name"] for wave in waves for host in wave["hosts"]} == {"load-1"}
    assert sum(wave["ledger"]["ok"] for wave in waves) + 2 == len(scene.server.log())
    assert finished.err.count("Round 1 of 1") == len(waves)
    if all(any(each["counts"] and each["side"] == side for each in answer["waves"]) for side in "AB"):
        assert mentions(finished.out, "A: ", "old/f.py")
        assert "old/f.py" in (scene.folder / "here/ab.md").read_text()


@pytest.mark.slow
def test_the_waves_of_a_and_b_go_on_without_their_command_and_ctrl_c_ends_them(scene: Scene) -> None:
    running = scene.start("ab", "f.py", scene.server.url, *LOAD, "--repeats", 2)
    running.wait_for(lambda: "Round 1" in running.err, "the first wave")
    running.process.send_signal(signal.SIGHUP)
    left = running.finish()
    assert (left.code, mentions(left.err, "kubernetes fetch load")) == (130, True), left.err
    fetched = scene.start("kubernetes", "fetch", "load").finish()
    assert len(scene.judge(fetched, "ab.json")["waves"]) >= 4
    for path in (scene.folder / "here/home").iterdir():
        path.rename(scene.folder / path.name)
    running = scene.start("ab", "f.py", scene.server.url, *LOAD, "--repeats", 100)
    running.wait_for(lambda: running.err.count("Round") > 1, "the first waves")
    running.process.send_signal(signal.SIGINT)
    answer = scene.judge(running.finish(), "ab.json")
    assert (answer["exit_code"], answer["interrupted"]) == (130, True)


@pytest.mark.slow
def test_a_plan_is_proven_by_pods_with_the_file_of_its_search(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    here = scene.folder / "here"
    monkeypatch.chdir(here)
    planned(here, "--target-rps", str(RATE), wave=open_plan(factories_file=(here / "f.py").resolve()))
    (plan,) = here.glob("plans/*_plan")
    words = ("--set", f"URL={scene.server.url}/there", "--time", 5, "--deadline", "1h")
    finished = scene.start("capacity", "--verify", plan.relative_to(here), *words).finish()
    answer = scene.judge(finished, "proof.json")
    (wave,) = scene.waves()
    assert answer["plan"] == str(plan.relative_to(here) / "fleet_plan.json")
    assert wave["warmup"]["ok"] + wave["ledger"]["ok"] + 1 == len(scene.server.log())
    assert answer["sent"] == wave["ledger"]["sent"] > 0
