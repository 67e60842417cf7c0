"""Waves of a Locust file: one task execution is one token and one record, whatever Locust's users look like."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.bench import NS, Bench, Finished, most_in_flight

if TYPE_CHECKING:
    from inference_benchmarker.embedded.running import RunningEndpoint

pytestmark = pytest.mark.process
HEAD = """
from locust import FastHttpUser, HttpUser, LoadTestShape, SequentialTaskSet, TaskSet, constant, events, task


def post(user, name):
    return user.client.post("/invocations", json={}, headers={"X-Request-Id": name}, name=name)

"""


def run(bench: Bench, text: str, target: RunningEndpoint | str, *arguments: object) -> Finished:
    """A wave of this Locust file."""
    folder = bench.folder()
    (folder / "users.py").write_text(HEAD + text)
    url = target if isinstance(target, str) else target.url
    given = ("--locust-file", "users.py", "--url", url, "--output-dir", "runs")
    return bench.run(*given, *arguments, factories=None, folder=folder)


def names(endpoint: RunningEndpoint) -> Counter[Any]:
    """How often each task's request arrived."""
    return Counter(endpoint.arrivals()["id"])


def labels(wave: Finished) -> Counter[str]:
    """How often each task was run, by our records."""
    return Counter(row["label"] for row in wave.rows)


WEIGHTED = """
class Weighted(HttpUser):
    wait_time = constant(30)  # the schedule sets the pace

    def on_start(self):
        self.ready = True

    @task(3)
    def often(self):
        assert self.ready
        post(self, "often")

    @task
    def seldom(self):
        post(self, "seldom")


class Ignored(LoadTestShape):
    def tick(self):
        return None


class Abstract(HttpUser):
    abstract = True

    @task
    def never(self):
        raise AssertionError
"""


@pytest.mark.parametrize("base", ["HttpUser", pytest.param("FastHttpUser", marks=pytest.mark.slow)])
def test_tasks_take_tokens_with_their_weights(bench: Bench, base: str) -> None:
    text = WEIGHTED.replace("(HttpUser)", f"({base})")
    with bench.endpoint(service="none", error_share=0.1) as endpoint:
        wave = run(bench, text, endpoint, "--client-rps", 100, "--obs-time", 2, "--workers", 2)
        statuses = Counter(endpoint.arrivals()["status"])
        arrived = names(endpoint)
    wave.check_books("100")
    assert [row["index"] for row in wave.rows] == list(range(200))
    assert labels(wave) == arrived
    assert arrived["often"] > 1.5 * arrived["seldom"] > 0
    assert (wave.ledger["ok"], wave.ledger["failed"]) == (statuses[200], statuses[500])
    assert wave.locust_totals() == {"requests": 200, "failures": statuses[500]}
    assert not wave.invalid


SETS = """
class Steps(SequentialTaskSet):
    @task
    def one(self):
        post(self, "one")

    @task
    def two(self):
        post(self, "two")

    @task
    class Inner(TaskSet):
        @task
        def inner(self):
            post(self, "inner")
            self.interrupt()

    @task
    def three(self):
        post(self, "three")
        self.interrupt(reschedule=False)


class Stepping(HttpUser):
    tasks = [Steps]
"""


@pytest.mark.parametrize("load", [pytest.param(("--client-rps", "40"), marks=pytest.mark.slow), ("--concurrency", "4")])
def test_nested_and_sequential_task_sets_run_in_their_order(bench: Bench, load: tuple[str, str]) -> None:
    with bench.endpoint(servers=20, service_s=0.01) as endpoint:
        wave = run(bench, SETS, endpoint, *load, "--num-requests", 60)
        arrived = names(endpoint)
    wave.check_books()
    assert labels(wave) == arrived
    assert sum(arrived.values()) == wave.ledger["sent"] == wave.ledger["ok"] == 60
    assert arrived["one"] >= arrived["two"] >= arrived["inner"] >= arrived["three"]
    if load[0] == "--concurrency":  # the open loop takes as many users as a busy machine makes it need
        assert arrived["one"] - arrived["three"] <= 4, "each user is somewhere in its sequence"
    assert wave.exit_code == 0


FAILING = """
import gevent
seen = open("events.txt", "a", buffering=1)


@events.request.add_listener
def on_request(name, exception, **_):
    print(name, type(exception).__name__, file=seen)


class Failing(HttpUser):
    @task
    def caught(self):
        with self.client.post("/invocations", json={}, headers={"X-Request-Id": "caught"}, name="caught",
                              catch_response=True) as response:
            response.failure("too slow, says the file")

    @task
    def forgiven(self):
        with self.client.post("/nowhere", json={}, name="forgiven", catch_response=True) as response:
            response.success()

    @task
    def raising(self):
        post(self, "raising")
        raise ValueError("after a good answer")

    @task
    def exiting(self):
        post(self, "exiting")
        raise SystemExit(3)

    @task
    def killed(self):
        post(self, "killed")
        raise gevent.GreenletExit

    @task
    def stopping(self):
        post(self, "stopping")
        self.stop()

    @task
    def twice(self):
        post(self, "twice")
        post(self, "twice")
"""
FAILURES = {"caught": "CatchResponseError", "raising": "ValueError", "exiting": "SystemExit", "killed": "GreenletExit"}


@pytest.mark.parametrize("load", [pytest.param(("--client-rps", "60"), marks=pytest.mark.slow), ("--concurrency", "3")])
def test_a_task_fails_by_its_events_or_by_what_it_raises(bench: Bench, load: tuple[str, str]) -> None:
    with bench.endpoint(service="none") as endpoint:
        wave = run(bench, FAILING, endpoint, *load, "--num-requests", 120, "--drain-timeout", 5)
        arrived = names(endpoint)
    wave.check_books()
    done = labels(wave)
    assert wave.ledger["sent"] == 120
    assert wave.ledger["abandoned"] == 0
    assert arrived == {name: n * (2 if name == "twice" else 1) for name, n in done.items() if name != "forgiven"}
    for row in wave.rows:
        assert row["error"] == FAILURES.get(row["label"]), row
    assert set(done) == {"caught", "forgiven", "raising", "exiting", "killed", "stopping", "twice"}
    events = Counter((wave.folder.parent.parent / "events.txt").read_text().splitlines())
    assert sum(events.values()) == wave.locust_totals()["requests"] == 120 + done["twice"]
    assert events["caught CatchResponseError"] == done["caught"] == wave.locust_totals()["failures"]
    assert events["forgiven NoneType"] == done["forgiven"]


CLASSES = """
class Heavy(HttpUser):
    weight = 3

    @task
    def heavy(self):
        post(self, "heavy")


class Light(FastHttpUser):
    weight = 1

    @task
    def light(self):
        post(self, "light")
"""


def test_user_classes_share_the_arrivals_by_weight_and_alike_for_any_number_of_workers(bench: Bench) -> None:
    drawn = []
    for workers in (1, 2):
        with bench.endpoint(service="none") as endpoint:
            flags = ("--client-rps", 60, "--obs-time", 1, "--seed", 4, "--workers", workers)
            wave = run(bench, CLASSES, endpoint, *flags)
            assert labels(wave) == names(endpoint)
        wave.check_books("60")
        drawn.append([row["label"] for row in wave.rows])
        assert 1.2 * drawn[-1].count("light") < drawn[-1].count("heavy") < 60
    assert drawn[0] == drawn[1]


def test_user_classes_share_the_concurrency_by_weight(bench: Bench) -> None:
    with bench.endpoint(servers=20, service_s=0.05) as endpoint:
        wave = run(bench, CLASSES, endpoint, "--concurrency", 4, "--obs-time", 1)
        log = endpoint.arrivals()
        assert labels(wave) == names(endpoint)
    wave.check_books()
    assert most_in_flight(log) == 4
    assert labels(wave)["heavy"] > 1.5 * labels(wave)["light"] > 0


def test_wait_time_passes_between_the_tasks_of_a_closed_loop(bench: Bench) -> None:
    text = """
class Waiting(HttpUser):
    wait_time = constant(0.3)

    @task
    def wait(self):
        post(self, "wait")
"""
    with bench.endpoint(service="none") as endpoint:
        wave = run(bench, text, endpoint, "--concurrency", 2, "--num-requests", 8)
        assert names(endpoint) == {"wait": 8}
    wave.check_books()
    done = sorted(row["done"] for row in wave.rows)
    for row in wave.rows:
        if row["index"] >= 2:
            assert any(row["sent"] - end >= 0.3 * NS for end in done), "an earlier task of this user was over"
    assert max(row["sent"] for row in wave.rows) >= 3 * 0.3 * NS
    assert wave.exit_code == 0


def test_a_user_that_cannot_start_fails_its_token_and_loses_none(bench: Bench) -> None:
    text = """
import itertools
numbers = itertools.count()


class Unsure(HttpUser):
    def on_start(self):
        if next(numbers) % 2:
            raise ConnectionError("no login")

    @task
    def sure(self):
        post(self, "sure")
        self.stop()
"""
    with bench.endpoint(service="none") as endpoint:
        wave = run(bench, text, endpoint, "--client-rps", 40, "--obs-time", 1)
        arrived = names(endpoint)
    wave.check_books("40")
    assert wave.ledger["sent"] == 40
    assert wave.errors() == {"ConnectionError": 40 - arrived["sure"]}
    assert 0 < arrived["sure"] < 40
    assert not wave.invalid


@pytest.mark.slow
def test_the_warm_up_of_a_locust_file_stands_in_no_count(bench: Bench) -> None:
    with bench.endpoint(service="none") as endpoint:
        wave = run(bench, CLASSES, endpoint, "--client-rps", 40, "--obs-time", 1, "--warmup", 1)
        assert sum(names(endpoint).values()) == 80
    wave.check_books("40")
    assert wave.ledger["ok"] == wave.summary["warmup"]["sent"] == 40
    assert wave.locust_totals() == {"requests": 40, "failures": 0}


def test_the_drain_and_the_time_limit_hold_for_tasks(bench: Bench) -> None:
    with bench.endpoint(service="none", hang_share=0.3, seed=5) as endpoint:
        flags = ("--client-rps", 30, "--obs-time", 1)
        limited = run(bench, CLASSES, endpoint, *flags, "--request-timeout", "0.4")
        hung = endpoint.arrivals()["status"].count(0)
        endpoint.clear()
        drained = run(bench, CLASSES, endpoint, *flags, "--drain-timeout", "0.4")
        left = endpoint.arrivals()["status"].count(0)
    for wave in (limited, drained):
        wave.check_books("30")
        assert wave.ledger["sent"] == 30
    assert sum(limited.errors().values()) == limited.ledger["failed"] == hung
    assert set(limited.errors()) == {"RequestTimeout"}, "whatever a FastHttpUser makes of it"
    assert drained.outcomes() == {"ok": 30 - left, "abandoned": left}
    assert drained.locust_totals()["requests"] == 30


@pytest.mark.slow
def test_the_host_of_the_file_comes_before_the_one_of_the_command(bench: Bench) -> None:
    with bench.endpoint(service="none") as endpoint:
        text = CLASSES.replace("weight", f'host = "{endpoint.url}"\n    weight')
        wave = run(bench, text, "http://127.0.0.1:9", "--client-rps", 30, "--num-requests", 10)
        assert sum(names(endpoint).values()) == 10
    assert wave.ledger["ok"] == 10


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1", "has no User class"),
        ("class Broken(HttpUser:\n    pass", "not valid Python"),
        pytest.param("import sys; sys.exit(4)", "importing it raised SystemExit: 4", marks=pytest.mark.slow),
    ],
)
def test_a_wrong_locust_file_is_one_message_and_leaves_nothing(bench: Bench, text: str, expected: str) -> None:
    wave = run(bench, text, "http://127.0.0.1:9", "--client-rps", 30, "--num-requests", 10, "--quiet")
    assert wave.code == 2
    assert expected in wave.err
    assert "users.py" in wave.err
    assert len(wave.err.splitlines()) == 1
    assert wave.run_dir is None
