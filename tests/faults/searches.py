"""Searches whose parts die, and what is built on them."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import psutil

from tests.faults.fault import Ending, Fault

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.bench import Finished
    from tests.faults.fault import Stage

# The endpoint is there already; what is "made" is a command that is to undo it.
MADE = """
import os
from inference_benchmarker import created
from sender import post


def endpoint_factory(kind: str = "a"):
    created([{remover!r}, "-c", "pass"])
    yield os.environ["TARGET"]


def invoke_factory(endpoint_name):
    return post


def payload_factory():
    return {{"pre_computed": True, "input": list(range(10_000))}}
"""
RAISES = MADE.replace('    created([{remover!r}, "-c", "pass"])\n', "").replace(
    'os.environ["TARGET"]\n', 'os.environ["TARGET"]\n    raise OSError("cannot delete")\n'
)
"""Nothing is reported, and the removal fails."""
SEARCH = ("capacity", "--yes", "--slo", "p99<500ms", "--start-rps", "20", "--max-rps", "60", "--time", "12")
SERVER: dict[str, Any] = {"servers": 4, "service_s": 0.02}


def flags(stage: Stage, remover: str, *more: str) -> tuple[str, ...]:
    """A search of an endpoint that is made; ``remover``: the program that is to remove it."""
    (stage.folder / "made.py").write_text(MADE.format(remover=remover))
    return (*SEARCH, "--factories-file", "made.py", "--output-dir", "runs", *more)


def search(stage: Stage, folder: Path, *command: str) -> Finished:
    """Another command on the folder of a search, which is named last."""
    return stage.start(*command, folder.relative_to(stage.folder), text=None).finish()


def not_removed(stage: Stage) -> Ending:
    """The program that is to remove the endpoint is not there."""
    stage.start("factory", text="from sender import post\n").finish()  # leaves the sender beside the file
    with stage.bench.endpoint(**SERVER) as endpoint:
        finished = stage.start(*flags(stage, "/nowhere/to/be/found"), text=None, target=endpoint).finish(180)
    (folder,) = (stage.folder / "runs").glob("*_capacity")
    fields = json.loads((folder / "capacity.json").read_text())
    assert (fields["ended"], fields["clean_up"], fields["exit_code"]) == ("complete", "failed", 3), fields
    assert search(stage, folder, "report").code == 3
    return Ending(finished, None, built=True)


def removal_raises(stage: Stage) -> Ending:
    """The code after the yield of endpoint_factory raises."""
    stage.start("factory", text="from sender import post\n").finish()
    asked = flags(stage, "")
    (stage.folder / "made.py").write_text(RAISES.format())
    with stage.bench.endpoint(**SERVER) as endpoint:
        finished = stage.start(*asked, text=None, target=endpoint).finish(180)
    (folder,) = (stage.folder / "runs").glob("*_capacity")
    fields = json.loads((folder / "capacity.json").read_text())
    assert (fields["ended"], fields["clean_up"], fields["exit_code"]) == ("complete", "failed", 3), fields
    assert "raised OSError: cannot delete" in finished.out, finished.out
    planned = search(stage, folder, "plan", "--target-rps", "100", "--output-dir", "runs")
    assert (planned.code, "was not removed" in planned.out) == (3, True), planned
    assert search(stage, folder, "endpoints", "clean").code == 1
    return Ending(finished, None, built=True)


def killed_in_a_ranking(stage: Stage) -> Ending:
    """The primary of the first of two searches is killed; the second goes well."""
    stage.start("factory", text="from sender import post\n").finish()
    with stage.bench.endpoint(**SERVER) as endpoint:
        ranked = flags(stage, sys.executable, "--vary", "kind=a,b", "--parallel", "1", "--target-rps", "100")
        running = stage.start(*ranked, text=None, target=endpoint)
        running.wait_for_arrivals(endpoint, 60)
        running.primary().kill()
        finished = running.finish(240)
    (folder,) = (stage.folder / "runs").glob("*_ranking")
    fields = json.loads((folder / "ranking.json").read_text())
    rows = {row["variant"]["kind"]: row for row in fields["rows"]}
    assert (rows["a"]["rank"], rows["a"]["exit_code"], rows["b"]["exit_code"], fields["exit_code"]) == (None, 3, 0, 3)
    assert "ended early" in finished.out, finished.out
    planned = search(stage, folder / rows["a"]["capacity"], "plan", "--target-rps", "100", "--output-dir", "runs")
    assert planned.code == 3, planned.err
    assert "its search ended early" in planned.out, planned.out
    return Ending(finished, None, built=True)


def not_removed_in_a_ranking(stage: Stage) -> Ending:
    """The program that is to remove both endpoints is not there."""
    stage.start("factory", text="from sender import post\n").finish()
    with stage.bench.endpoint(**SERVER) as endpoint:
        ranked = flags(stage, "/nowhere/to/be/found", "--vary", "kind=a,b", "--parallel", "1")
        finished = stage.start(*ranked, text=None, target=endpoint).finish(240)
    (folder,) = (stage.folder / "runs").glob("*_ranking")
    fields = json.loads((folder / "ranking.json").read_text())
    assert (fields["exit_code"], [row["exit_code"] for row in fields["rows"]]) == (3, [3, 3]), fields
    assert "was not removed" in fields["headline"], fields
    assert search(stage, folder, "report").code == 3
    planned = search(stage, folder, "plan", "--target-rps", "100", "--output-dir", "runs")
    assert (planned.code, "was not removed" in planned.out) == (3, True), planned
    return Ending(finished, None, built=True)


def without_its_keeper(name: str) -> Callable[[Stage], Ending]:
    """The process with this module, which keeps the endpoint or makes it, is killed in mid-search."""

    def play(stage: Stage) -> Ending:
        stage.start("factory", text="from sender import post\n").finish()
        with stage.bench.endpoint(**SERVER) as endpoint:
            running = stage.start(*flags(stage, sys.executable), text=None, target=endpoint)
            running.wait_for_arrivals(endpoint, 60)
            below = psutil.Process(running.process.pid).children(recursive=True)
            (one,) = [each for each in below if each.cmdline()[-2:] == ["-m", name]]
            one.kill()
            finished = running.finish(180)
        (folder,) = (stage.folder / "runs").glob("*_capacity")
        fields = json.loads((folder / "capacity.json").read_text())
        assert (fields["rate"], fields["at_least"], fields["ended"], fields["exit_code"]) == (None, None, "early", 3), (
            fields
        )
        assert search(stage, folder, "report").code == 3
        return Ending(finished, None, built=True)

    return play


SEARCHES = (
    Fault(
        "search-keeper-killed",
        "the process that runs the endpoint of a search is killed, and the endpoint with it",
        "nothing: no rate is reported for an endpoint that was not there throughout",
        "the search",
        3,
        without_its_keeper("server_capacity.provisioning"),
        slow=True,
    ),
    Fault(
        "search-factory-killed",
        "the process in which `endpoint_factory` runs is killed in a search",
        "nothing: no rate is reported for an endpoint that was not there throughout",
        "the search",
        3,
        without_its_keeper("server_capacity.provisioning.maker"),
        slow=True,
    ),
    Fault(
        "search-not-removed",
        "an endpoint that was created for a search cannot be removed",
        "the search; its exit code, also in `report`, is that of a search that left something behind",
        "nothing",
        3,
        not_removed,
        slow=True,
    ),
    Fault(
        "search-removal-raises",
        "the code after the `yield` of `endpoint_factory` raises, and it reported nothing with `created()`",
        "the search; its exit code, also in a plan on it, is that of a search that left something behind",
        "nothing",
        3,
        removal_raises,
        slow=True,
    ),
    Fault(
        "search-not-removed-in-a-ranking",
        "the endpoints that were created for two searches of `capacity --vary` cannot be removed",
        "both searches; the exit code of each, of the ranking and of a plan on it is that of a search that left "
        "something behind",
        "nothing",
        3,
        not_removed_in_a_ranking,
        slow=True,
    ),
    Fault(
        "search-killed-in-a-ranking",
        "the primary of one of two searches of `capacity --vary` is killed",
        "the other search; the broken one has no rank, and a plan on it says that it ended early, with its exit code",
        "the rest of that search",
        3,
        killed_in_a_ranking,
        slow=True,
    ),
)
