"""Follows a wave in its pods, brings its results home, and prints their report as of any run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference_benchmarker.cli.core.terminal import say
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.exit_codes import BAD_INPUT, INTERRUPTED, INVALID, MISSED, OK, worst_exit_code
from inference_benchmarker.words.redact import hidden

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path

    from inference_benchmarker.engine.pods.follower import Follower
    from inference_benchmarker.engine.pods.following import Outcome
    from inference_benchmarker.engine.pods.kubectl import Kubectl

_WORDS_OF_AN_END = (BAD_INPUT, INVALID, INTERRUPTED)
"""Exit codes of a wave without results, whose reason is its last words."""


@dataclass(frozen=True, slots=True)
class Abroad:
    """A Job that is there. ``may_end``: Ctrl-C ends its wave early, with its report; else it leaves it alone.

    ``output``: of the report, with ``json``, ``quiet``, and the files ``markdown`` and ``junit`` of a comparison.
    ``is_steered``: this terminal has the keys that change its rate.
    """

    kubectl: Kubectl
    job: str
    uid: str
    output_dir: Path
    output: Namespace
    may_end: bool
    is_steered: bool = False


def pods_of(uid: str) -> str:
    """The selector of a Job's pods, and of no others of its name before it."""
    return f"batch.kubernetes.io/controller-uid={uid}"


def bring_home(abroad: Abroad) -> int:
    """The exit code of the wave, once its results are here and its Job is removed; INTERRUPTED where the user left."""
    from inference_benchmarker.cli.kubernetes.onlooker import onlooking
    from inference_benchmarker.engine.pods.draft import Draft
    from inference_benchmarker.engine.pods.follower import Follower
    from inference_benchmarker.engine.pods.following import Following
    from inference_benchmarker.engine.pods.making import remove
    from inference_benchmarker.engine.processes.interrupts import counting_interrupts

    draft = Draft(abroad.output_dir, f"{abroad.job}-{abroad.uid.partition('-')[0]}")
    with counting_interrupts() as interrupts:
        with onlooking(quiet=abroad.output.quiet, is_steered=abroad.is_steered) as onlooker:
            follower = Follower(onlooker.tell, draft, onlooker.show)
            following = Following(abroad.kubectl, pods_of(abroad.uid), follower, onlooker, may_end=abroad.may_end)
            outcome = following.run(interrupts)
        if outcome is None or outcome.is_lost:
            if outcome is not None and follower.code is None:
                _say_rest(abroad, follower, outcome)
            remove(abroad.kubectl, abroad.job, say)
    if outcome is not None and not outcome.is_lost:
        return _left(abroad, outcome)
    if follower.results:
        printed = [_report(path, abroad.output) for path in follower.results]
        return worst_exit_code(follower.code, *printed)
    return _without_results(follower.code, outcome)


def _left(abroad: Abroad, outcome: Outcome) -> int:
    """The wave goes on without this command."""
    namespace = abroad.kubectl.namespace and f" --namespace {abroad.kubectl.namespace}"
    fetch = f"`benchmark kubernetes fetch {abroad.job}{namespace or ''}` fetches its results"
    if outcome.is_left:
        say(f"Job {abroad.job} is left as it is: {fetch}.")
        return INTERRUPTED
    say(f"benchmark: The results of Job {abroad.job} are not here: {outcome.why}. {fetch}.")
    return INVALID


def _say_rest(abroad: Abroad, follower: Follower, outcome: Outcome) -> None:
    """Say what the wave said last, which no connection has brought."""
    from inference_benchmarker.engine.pods.draft import with_files_here
    from inference_benchmarker.engine.pods.kubectl import KubectlError

    if outcome.pod is None:
        return
    try:
        log = abroad.kubectl.run("logs", outcome.pod.name, alone=True).decode(errors="replace")
    except KubectlError:
        return
    for line in hidden(log).splitlines()[follower.lines :]:
        say(with_files_here(line))


def _without_results(code: int | None, outcome: Outcome | None) -> int:
    """Say how a wave ended of which there are no results here."""
    pod = outcome and outcome.pod
    ended_with = code if code is not None else pod and pod.code
    if ended_with in _WORDS_OF_AN_END:
        return int(ended_with or OK)
    if pod and pod.code in (OK, MISSED):
        say(f"benchmark: The results are gone: pod {pod.name} kept them for an hour, and has ended ({pod.end}).")
        return INVALID
    how = f"pod {pod.name} has ended ({pod.end})" if pod else "its pod is gone"
    say(f"benchmark: The first pod, which runs the primary, was lost with its results: {how}.")
    return INVALID


def _report(path: Path, output: Namespace) -> int:
    """Print the report of a run that came from elsewhere, and is read as such; returns its exit code."""
    from inference_benchmarker.cli.compare.ab_report import print_fetched
    from inference_benchmarker.cli.report.report import run
    from visualization.comparison.ab import is_ab

    try:
        return print_fetched(path, output) if is_ab(path) else run([str(path), *(["--json"] if output.json else [])])
    except BenchmarkError as error:  # the pod left other files than its wave makes
        say(f"benchmark: {error}")
        return INVALID
