"""``benchmark --kubernetes``: a command in pods, which this one makes, follows and removes."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

from inference_benchmarker.cli.core.terminal import passing, say, say_nothing
from inference_benchmarker.cli.kubernetes.bringing_home import Abroad, bring_home, pods_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from inference_benchmarker.cli.kubernetes.asked_command import AskedCommand
    from inference_benchmarker.cli.wave.asked_pods import AskedPods
    from inference_benchmarker.engine.pods.kubectl import Kubectl


def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    from inference_benchmarker.engine.pods.kubectl import Kubectl

    command = _asked(arguments)
    asked, output = command.pods, command.output
    if asked.lacking:
        say(asked.lacking_text)
    passing("Asking the cluster…", quiet=output.quiet)
    kubectl = Kubectl.of_user(asked.pods.namespace)
    with ExitStack() as following:
        job = _begun(kubectl, asked, following, quiet=output.quiet)
        uid = job["metadata"]["uid"]
        return bring_home(
            Abroad(
                kubectl=kubectl,
                job=asked.pods.job,
                uid=uid,
                output_dir=command.output_dir,
                output=output,
                may_end=True,
                is_steered=command.is_steered,
            )
        )


def _asked(arguments: list[str]) -> AskedCommand:
    """The command that the arguments describe; BenchmarkError with all that is wrong with them."""
    from inference_benchmarker.cli.kubernetes import ab_in_pods, asked_command

    if arguments[0] == "ab":
        return ab_in_pods.ab(arguments[1:])
    if arguments[0] == "capacity":
        return asked_command.search(arguments[1:])
    return asked_command.wave(arguments)


def _begun(kubectl: Kubectl, asked: AskedPods, following: ExitStack, *, quiet: bool) -> dict[str, Any]:
    """The Job, whose pods have all started. Where they do not, nothing is left of it.

    From then on ``following`` counts interrupts: one that comes before anybody follows the wave ends it all the same.
    """
    from inference_benchmarker.engine.pods.making import check_rights, making
    from inference_benchmarker.engine.pods.waiting import await_pods
    from inference_benchmarker.engine.processes.interrupts import counting_interrupts

    tell: Callable[[str], None] = say_nothing if quiet else say
    pods, wave = asked.pods, asked.wave
    check_rights(kubectl, wave)
    variables = {name: os.environ[name].encode() for name in asked.variables}
    with making(kubectl, pods, wave, variables, tell) as job:
        tell(f"Job {pods.job}: starting {pods.pods + 1} pods{_place(kubectl)}.")
        await_pods(kubectl, pods, pods_of(job["metadata"]["uid"]), wave.join_timeout_s, tell)
        following.enter_context(counting_interrupts())
    return job


def _place(kubectl: Kubectl) -> str:
    return f" in namespace {kubectl.namespace}" if kubectl.namespace else ""
