"""``benchmark --kubernetes`` through the real kubectl: pods are processes, and a server stamps each request."""

from __future__ import annotations

import json
import os
import re
import signal
from typing import TYPE_CHECKING

import psutil
import pytest

from inference_benchmarker import OpenLoop, Wave
from inference_benchmarker.cli.dispatch import main
from inference_benchmarker.cli.kubernetes import in_pods
from inference_benchmarker.cli.kubernetes.bringing_home import bring_home
from tests.case import case
from tests.kube.conftest import wait_until
from tests.kube.made import job
from tests.kube.scene import RATE, Scene, says
from tests.performance.stamp_server import StampServer
from tests.person import Person

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.cli.kubernetes.bringing_home import Abroad
    from tests.bench import Bench
    from tests.kube.cluster import Cluster
    from tests.kube.kubectl import Kubectl

pytestmark = pytest.mark.process

VALUE = "v4lue-of-the-endpoints-key"
FACTORIES = """
import os
import urllib.request

KEY = os.environ["ENDPOINT_KEY"]


def invoke_factory():
    def invoke(payload):
        with urllib.request.urlopen(urllib.request.Request("URL", headers={"X-Api-Key": KEY})) as answer:
            return answer.read()

    return invoke


def payload_factory():
    return {"pre_computed": True, "input": [1]}
"""


@pytest.fixture
def person() -> Iterator[Person]:
    made = Person()
    yield made
    made.leave()


@pytest.fixture
def scene(bench: Bench, kubectl: Kubectl, cluster: Cluster) -> Iterator[Scene]:
    with StampServer(address=cluster.address) as server:
        yield Scene(bench, kubectl, cluster, server)


def shown(scene: Scene) -> str:
    """All that others may see of a wave while it runs: its objects but for the Secret, arguments and logs."""
    objects = scene.kubectl("get", "jobs,pods,configmaps,services,events", "--output=json")
    arguments = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    return "\n".join([objects, *arguments, scene.kubectl("logs", scene.pod(0)), scene.kubectl("logs", scene.pod(1))])


def test_a_wave_from_three_pods_comes_home_and_leaves_nothing(scene: Scene) -> None:
    (scene.folder / "f.py").write_text(FACTORIES.replace("URL", scene.server.url))
    words = ("--pass-env", "ENDPOINT_KEY", "--job-name", "load")
    running = scene.begun(2, *words, command=("--factories-file", "f.py"), ENDPOINT_KEY=VALUE)
    secret = scene.kubectl.object("secret", "load")
    seen = shown(scene)
    summary = scene.judge_results(running.finish())
    assert (summary["ledger"]["ok"], summary["ledger"]["sent"]) == (2 * RATE, 2 * RATE)
    assert [(host["name"], host["sent"]) for host in summary["hosts"]] == [("load-1", RATE), ("load-2", RATE)]
    for host in summary["hosts"]:
        assert (host["zone"], host["instance_type"]) == (host["node"].replace("node", "zone"), "tests.large")
    assert {*secret["data"]} == {"load-0.json", "load-1.json", "load-2.json", "ENDPOINT_KEY"}
    assert [each["kind"] for each in secret["metadata"]["ownerReferences"]] == ["Job"]
    assert says(running.err, "Job load: starting 3 pods", f"Sending {RATE} requests/s for 2 s")
    assert re.search(r"^Run directory: home/\S+_benchmark$", running.out, re.MULTILINE)
    fetched = "".join(path.read_text(errors="replace") for path in scene.folder.glob("home/**/*") if path.is_file())
    assert VALUE not in seen + running.out + running.err + fetched


@pytest.mark.slow
def test_a_search_from_pods_is_one_job_and_its_folder_comes_home(scene: Scene) -> None:
    """The server takes one request at a time, for 20 ms each: it cannot serve 50 a second."""
    scene.server.stop()
    with StampServer(address=scene.cluster.address, delay_ms=20, servers=1) as server:
        load = ("--slo", "p99<300ms", "--time", 20, "--max-rps", 60, "--seed", 7)
        pods = ("--pods", 2, "--job-name", "search", "--deadline", 600, "--output-dir", "home")
        running = scene.other("capacity", server.url, "--kubernetes", *pods, *load)
        running.wait_for(lambda: len(server.log()), "the first request")
        before = {pod["metadata"]["uid"] for pod in scene.pods()}
        finished = running.finish(180)
        arrived = len(server.log())
    assert len(before) == 3
    (found,) = scene.folder.glob("home/*_capacity/capacity.json")
    capacity = json.loads(found.read_text())
    assert finished.code == capacity["exit_code"], finished.err
    waves = [json.loads(path.read_text()) for path in found.parent.glob("*/summary.json")]
    assert len(waves) > 1
    assert sum(wave["ledger"]["ok"] for wave in waves) == arrived
    assert capacity["interval"]["low"] < 50
    assert {host["name"] for wave in waves for host in wave["hosts"]} == {"search-1", "search-2"}
    assert f"{found.parent.relative_to(scene.folder)}" in finished.out
    assert says(finished.err, f"Page: {found.parent.relative_to(scene.folder)}/capacity.html")
    scene.judge_rest()


def refusals(scene: Scene) -> Iterator[tuple[tuple[object, ...], tuple[str, ...]]]:
    """What a cluster refuses, and what is said of it."""
    scene.cluster.deny("create", "secrets")
    scene.cluster.deny("create", "pods/exec")
    yield (), ("create secrets", "create pods/exec", "administrator")
    scene.cluster.allow()
    yield ("--namespace", "nowhere"), ("no namespace nowhere", "--namespace")


def test_what_the_user_may_not_do_is_said_at_once(scene: Scene) -> None:
    for words, expected in refusals(scene):
        with case(expected[0]):
            finished = scene.start(1, *words).finish()
            assert (finished.code, says(finished.err, *expected)) == (2, True), finished.err
    scene.judge_rest()
    assert len(scene.server.log()) == 0


def hopeless(scene: Scene) -> Iterator[tuple[tuple[object, ...], tuple[str, ...]]]:
    """Pods that do not start, and what is said of them."""
    scene.cluster.miss_image("nowhere")
    yield ("--pod-image", "nowhere/x:1"), ("ImagePullBackOff", "nowhere/x:1", "cannot be pulled")
    yield ("--node-selector", "pool=load", "--join-timeout", 3), ("0 of 3 pods", "3 s", "0/3 nodes are available")
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}}
    scene.kubectl.create({**quota, "spec": {"hard": {"pods": "0"}}})
    yield (), ("cannot make its pods", "exceeded quota: small")
    scene.kubectl("delete", "resourcequota", "small")
    scene.kubectl.create(job("taken", "true"))
    yield ("--job-name", "taken"), ("There is a Job taken already", "benchmark kubernetes clean taken")


@pytest.mark.slow
def test_pods_that_do_not_start_are_explained_in_the_words_of_the_cluster(scene: Scene) -> None:
    for words, expected in hopeless(scene):
        with case(expected[0]):
            finished = scene.start(1, *words).finish()
            assert (finished.code, says(finished.err, *expected)) == (2, True), finished.err
    assert scene.kubectl("get", "job", "taken", "--output=name") == "job.batch/taken\n"
    scene.kubectl("delete", "job", "taken")
    scene.judge_rest()
    assert len(scene.server.log()) == 0


@pytest.mark.slow
def test_a_connection_that_breaks_again_and_again_loses_nothing(scene: Scene) -> None:
    """The first one is cut while the wave runs, and six more while its results come."""
    scene.cluster.cut_streams(300)
    running = scene.begun(3)
    running.wait_for(lambda: "broke off" in running.err, "the cut")
    scene.cluster.cut_streams(20_000, times=6)
    finished = running.finish()
    scene.judge_results(finished)
    assert finished.err.count("broke off") >= 3, finished.err
    # On a busy machine the wave may be over before the first cut is noticed.
    assert says(finished.err, "again.")
    assert any(says(finished.err, what) for what in ("The wave goes on.", "are fetched on a new one.")), finished.err


@pytest.mark.slow
def test_a_wave_whose_command_is_gone_goes_on_and_is_fetched(scene: Scene) -> None:
    running = scene.begun(5, "--job-name", "load")
    running.process.send_signal(signal.SIGHUP)
    left = running.finish()
    assert (left.code, says(left.err, "Job load is left", "benchmark kubernetes fetch load")) == (130, True), left.err
    leaving = scene.other("kubernetes", "fetch", "load", "--output-dir", "home")
    leaving.wait_for(lambda: "Sending" in leaving.err, "the words of the wave")
    leaving.process.send_signal(signal.SIGINT)
    assert leaving.finish().code == 130
    wait_until(lambda: len(scene.server.log()) == 5 * RATE)
    fetched = scene.other("kubernetes", "fetch", "load", "--output-dir", "home", "--json").finish()
    summary = scene.judge_results(fetched)
    assert (summary["ledger"]["ok"], summary["interrupted"]) == (5 * RATE, False)
    assert json.loads(fetched.out)["ledger"] == summary["ledger"]
    again = scene.other("kubernetes", "fetch", "load").finish()
    assert (again.code, says(again.err, "There is no Job load")) == (2, True), again.err


@pytest.mark.slow
def test_ctrl_c_ends_the_wave_with_its_report(scene: Scene) -> None:
    running = scene.begun(120)
    running.process.send_signal(signal.SIGINT)
    finished = running.finish()
    summary = scene.judge_results(finished)
    assert (finished.code, summary["interrupted"]) == (130, True)
    assert "RESULTS" in finished.out
    assert finished.err.count(f"GET {scene.server.url}") == 1


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_while_the_pods_start_leaves_nothing(scene: Scene, number: signal.Signals) -> None:
    """The first processes of the pods hear at once that they are to end, whatever they do just then."""
    running = scene.start(60, "--job-name", "load")
    running.wait_for(lambda: [pod["status"]["phase"] for pod in scene.pods()] == ["Running"] * 3, "the pods")
    running.process.send_signal(number)
    finished = running.finish()
    assert (finished.code, "Interrupted" in finished.err) == (130, True), finished.err
    scene.judge_rest()
    assert len(scene.server.log()) == 0


@pytest.mark.slow
def test_a_second_ctrl_c_abandons_what_is_in_flight(scene: Scene) -> None:
    scene.server.stop()
    with StampServer(address=scene.cluster.address, delay_ms=5_000) as server:
        scene.server = server
        running = scene.begun(120)
        running.process.send_signal(signal.SIGINT)
        running.wait_for(lambda: "Interrupted: the wave ends" in running.err, "the first one")
        running.process.send_signal(signal.SIGINT)
        finished = running.finish()
    summary = scene.summary()
    assert (finished.code, summary["interrupted"]) == (130, True), finished.err
    assert summary["ledger"]["abandoned"] > 0
    scene.judge_rest()


@pytest.mark.slow
def test_ctrl_c_while_results_come_leaves_them_to_another_command(scene: Scene) -> None:
    scene.cluster.cut_streams(8_000, times=1_000)
    running = scene.begun(2, "--job-name", "load")
    running.wait_for(lambda: [*scene.folder.glob("home/.*/*/*")], "a part of the results")
    running.process.send_signal(signal.SIGINT)
    left = running.finish()
    assert (left.code, says(left.err, "Job load is left", "benchmark kubernetes fetch load")) == (130, True), left.err
    scene.cluster.mend()
    scene.judge_results(scene.other("kubernetes", "fetch", "load", "--output-dir", "home").finish())


@pytest.mark.slow
def test_a_person_at_a_terminal_sees_the_panel_and_presses_keys(scene: Scene, person: Person) -> None:
    """The connection breaks in between: neither is lost. Nobody may get nodes here, which is no error."""
    scene.cluster.deny("get", "nodes")
    running = scene.begun(0, "--interactive", "--deadline", 600, person=person)
    person.see("Target 20/s. Keys:")
    person.press("2")
    person.see("Target 40/s. Keys:")
    scene.cluster.go_away(0.5)
    person.see("again.")
    person.press("/")
    person.see("in flight")
    person.press("q")
    summary = scene.judge_results(running.finish())
    assert summary["interrupted"] is False
    (run,) = scene.folder.glob("home/*")
    load = Wave.load(run).plan.load
    assert isinstance(load, OpenLoop)
    assert [int(stage.to_rps) for stage in load.stages][:2] == [20, 40]
    assert {host.get("zone") for host in summary["hosts"]} == {None}
    assert "running, sent" not in person.screen


@pytest.mark.slow
def test_an_interrupt_before_the_wave_is_followed_ends_it_too(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It comes as soon as the pods have started, while nobody hears them yet."""

    def interrupted(abroad: Abroad) -> int:
        signal.raise_signal(signal.SIGINT)
        return bring_home(abroad)

    monkeypatch.setattr(in_pods, "bring_home", interrupted)
    monkeypatch.chdir(scene.folder)
    for name, value in scene.kubectl.environment.items():
        monkeypatch.setenv(name, value)
    load = ["--pods=1", "--client-rps=20", "--obs-time=120", "--output-dir=home"]
    code = main([scene.server.url, "--kubernetes", *load])
    said = capfd.readouterr().err
    assert code == 130, said
    assert "Interrupted: the wave ends" in said
    scene.judge_rest()


@pytest.mark.slow
def test_a_lost_agent_is_a_lost_host_and_a_lost_primary_loses_the_results(scene: Scene) -> None:
    namespace = scene.kubectl("config", "view", "--minify", "--output=jsonpath={..namespace}")
    running = scene.begun(6)
    scene.cluster.kill_for_memory(namespace, scene.pod(2))
    finished = running.finish()
    assert (finished.code, "host_lost" in finished.out) == (3, True), finished.out
    scene.judge_rest()
    scene.server.clear()
    (run,) = scene.folder.glob("home/*")
    running = scene.begun(30)
    scene.cluster.kill_for_memory(namespace, scene.pod(0))
    finished = running.finish()
    assert (finished.code, says(finished.err, "lost with its results", "OOMKilled")) == (3, True), finished.err
    assert list(scene.folder.glob("home/*")) == [run]
    scene.judge_rest()


@pytest.mark.slow
def test_a_wave_that_cannot_begin_says_why_and_leaves_nothing(scene: Scene) -> None:
    """Its first pod has ended before anybody could follow it."""
    (scene.folder / "f.py").write_text("import no_such_package\n" + FACTORIES)
    finished = scene.start(1, command=("--factories-file", "f.py"), ENDPOINT_KEY=VALUE).finish()
    assert (finished.code, says(finished.err, "no_such_package")) == (2, True), finished.err
    scene.judge_rest()
    assert len(scene.server.log()) == 0


@pytest.mark.slow
def test_results_of_a_pod_that_is_asked_to_end_come_home(scene: Scene) -> None:
    """As where its node is emptied: the wave ends with its report, and its results come while the pod may live."""
    running = scene.begun(120)
    scene.kubectl("delete", "pod", scene.pod(0), "--wait=false")
    finished = running.finish()
    summary = scene.judge_results(finished)
    assert (finished.code, summary["interrupted"]) == (130, True)


@pytest.mark.slow
def test_results_that_cannot_be_stored_stay_in_the_cluster(scene: Scene) -> None:
    running = scene.begun(2, "--job-name", "load")
    (scene.folder / "home").write_text("a file")
    finished = running.finish()
    assert (finished.code, says(finished.err, "home", "kubernetes fetch load")) == (3, True), finished.err
    (scene.folder / "home").unlink()
    fetched = scene.other("kubernetes", "fetch", "load", "--output-dir", "home", "--quiet").finish()
    scene.judge_results(fetched)


@pytest.mark.slow
def test_clean_removes_what_has_ended_and_names_what_runs(scene: Scene) -> None:
    running = scene.begun(60, "--job-name", "load")
    os.kill(running.process.pid, signal.SIGKILL)
    running.process.wait()
    scene.kubectl.create(job("other", "true"))
    cleaned = scene.other("kubernetes", "clean").finish()
    assert (cleaned.code, says(cleaned.out, "Job load is running", "No Job has ended")) == (0, True), cleaned.out
    refused = scene.other("kubernetes", "clean", "other").finish()
    assert (refused.code, says(refused.err, "Job other is none of a wave")) == (2, True), refused.err
    scene.kubectl("delete", "job", "other")
    cleaned = scene.other("kubernetes", "clean", "load").finish()
    assert (cleaned.code, says(cleaned.out, "Job load is removed")) == (0, True), cleaned.out
    wait_until(lambda: scene.kubectl("get", "jobs,secrets,configmaps,services", "--output=name") == "")
    wait_until(lambda: all(pod["metadata"].get("deletionTimestamp") for pod in scene.pods()))
