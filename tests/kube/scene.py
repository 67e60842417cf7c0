"""A user of ``benchmark --kubernetes``, in a folder, with a cluster and a server that its pods reach."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.kube.conftest import wait_until

if TYPE_CHECKING:
    from tests.bench import Bench, Finished, Running
    from tests.kube.cluster import Cluster
    from tests.kube.kubectl import Kubectl
    from tests.performance.stamp_server import StampServer
    from tests.person import Person

FILES = ("get", "all,secrets,configmaps", "--output=name")
RATE = 20


def says(text: str, *parts: str) -> bool:
    """Tells whether each of these stands somewhere in the text."""
    return all(part in text for part in parts)


class Scene:
    """A user with a folder, a cluster, and a server that its pods reach."""

    def __init__(self, bench: Bench, kubectl: Kubectl, cluster: Cluster, server: StampServer) -> None:
        self.kubectl, self.cluster, self.server = kubectl, cluster, server
        self.folder = bench.folder()
        self._bench = bench

    def start(self, seconds: int, *words: object, command: tuple[str, ...] = (), **options: Any) -> Running:
        """Start a wave of three pods; of 0 seconds there is none that ends by itself."""
        bounds = ("--obs-time", seconds) if seconds else ()
        load = ("--pods", 2, "--client-rps", RATE, *bounds, "--output-dir", "home")
        line = (
            (*command, "--kubernetes", *load, *words) if command else (self.server.url, "--kubernetes", *load, *words)
        )
        return self.other(*line, **options)

    def other(self, *line: object, person: Person | None = None, **environment: str) -> Running:
        """Start any command, at a person's terminal if there is one."""
        variables = {**self.kubectl.environment, **environment}
        at: dict[str, Any] = {}
        if person is not None:
            at = {"streams": person.streams, "session": ("setsid", "--ctty")}
        return self._bench.start(*line, factories=None, folder=self.folder, environment=variables, **at)

    def begun(self, seconds: int, *words: object, **options: Any) -> Running:
        """A wave whose load has begun."""
        running = self.start(seconds, *words, **options)
        running.wait_for(lambda: len(self.server.log()), "the first request")
        return running

    def pod(self, index: int) -> str:
        """The name of a pod."""
        selector = f"--selector=batch.kubernetes.io/job-completion-index={index}"
        return self.kubectl("get", "pods", selector, "--output=jsonpath={.items[0].metadata.name}")

    def pods(self) -> list[dict[str, Any]]:
        """All pods that are there."""
        found: list[dict[str, Any]] = self.kubectl.object("pods")["items"]
        return found

    def summary(self) -> dict[str, Any]:
        """The only run that came home."""
        (found,) = self.folder.glob("home/*/summary.json")
        summary = json.loads(found.read_text())
        assert isinstance(summary, dict)
        return summary

    def judge_results(self, finished: Finished) -> dict[str, Any]:
        """The counts are the server's, the exit code is the wave's, and nothing is left in the cluster."""
        summary = self.summary()
        assert summary["ledger"]["ok"] == len(self.server.log())
        assert finished.code == summary["exit_code"], finished.err
        self.judge_rest()
        return summary

    def judge_rest(self) -> None:
        """Nothing is left in the cluster, but what just ends."""
        wait_until(lambda: self.kubectl(*FILES) == "")
        assert [each.name for each in self.folder.glob("home/.*")] == []
