"""A wave from pods as its flags ask for it: ``manifests`` prints its objects, and ``--kubernetes`` makes them."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.flags import reworded
from inference_benchmarker.cli.core.hosts_flags import OF_HOSTS
from inference_benchmarker.cli.wave.pods_flags import take_pods
from inference_benchmarker.cli.wave.pods_wave import JOIN_TIMEOUT_S, read_files
from inference_benchmarker.cli.wave.wave_flags import URL_WITHOUT_AIPERF
from inference_benchmarker.errors import BenchmarkError, refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from inference_benchmarker.cli.core.flags import Table
    from inference_benchmarker.cli.wave.pods_wave import WaveForPods
    from inference_benchmarker.engine.pods.objects import PodsWave
    from inference_benchmarker.engine.pods.pods import Pods

_END_S = 60  # beyond the drain, for the report
_NOT_IN_PODS = {
    "demo": "the embedded endpoint listens on the loopback of one pod: give an endpoint",
    "calibrate": "what this tool adds is measured on one machine: leave it out",
    "aiperf": "aiperf sends from one machine alone: leave it out",
    "aiperf_only": "aiperf sends from one machine alone: leave it out",
    "interactive": "nobody holds its keys there: give --stages, or send the wave with --kubernetes",
    "ui": "the page is on the loopback of a pod: leave it out",
    "hosts": "the pods are the hosts",
    "hosts_file": "the pods are the hosts",
    "listen": "the pods find each other by a Service",
    "host_keys": "the pods have keys of their own",
    "requirements": "install the packages in the image",
    "output_dir": "the pods have a place of their own",
    "api_key": "it would be printed: set the variable BENCHMARK_API_KEY, and give --pass-env BENCHMARK_API_KEY",
    "vary": "endpoints that a pod makes stay if it is lost: search one that is there",
    "suspend_scaling": "what a pod suspends stays so if it is lost: suspend it before",
    "price_file": "prices are for --vary: leave it out",
}
"""Flags of a command that are not for pods, each with its reason."""
_WITHOUT_USE = ("aiperf_args", "aiperf_pause", "port", "verbose")
"""Others that mean nothing there: a pod's workers are in other pods, and its report is for no terminal."""
_CLOCKS_AND_FILES = "start, clocks and files of the pods"
_ABOUT_PODS = {
    "workers": "worker processes in all pods together (default: one per pod)",
    "join_timeout": "seconds to wait for every pod to join, not counting the time to load the factories file (default "
    f"{JOIN_TIMEOUT_S})",
    "max_clock_error": "a wave warns if a pod's clock may be off by more than this (default 2ms), and is INVALID "
    "beyond ten times this",
    "pass_env": "pass this environment variable to the pods (repeatable); its value appears in no argument, log or "
    "report",
    "with_file": "copy this file to every pod (repeatable); it must be below the current folder and gets the same "
    "relative path there",
    "json": "print the summary as JSON, in the log of the coordinating pod",
    "url": URL_WITHOUT_AIPERF,
}
"""The help of flags that speaks of pods where that of a wave speaks of hosts."""


@dataclass(frozen=True, slots=True)
class AskedPods:
    """The pods and their wave. ``variables``: of the Secret; ``lacking``: as of ``WaveForPods``."""

    pods: Pods
    wave: PodsWave
    variables: Sequence[str]
    lacking: Sequence[str]

    @property
    def lacking_text(self) -> str:
        """The sentence on what the pods lack; empty where that is nothing."""
        flags = " ".join(f"--pass-env {name}" for name in self.lacking)
        names = ", ".join(self.lacking)
        return names and f"The pods lack {names}, which is set here: give {flags}, unless the image sets it."


def asked_pods(
    options: dict[str, Any],
    problems: list[str],
    describe: Callable[[Pods], WaveForPods],
    job: str | None = None,
    *,
    allowed: Sequence[str] = (),
) -> AskedPods:
    """The pods and the wave that were asked for. ``describe``: what they run; ``job``: its name where none was given.

    ``allowed``: flags that are not refused, since this command does what no pod can.

    BenchmarkError with all that is wrong.
    """
    from inference_benchmarker.engine.pods.objects import PodsWave

    pods = take_pods({"keys_dir": None, **options, "job_name": options["job_name"] or job}, problems)
    problems += _refused(options, allowed)
    refuse(problems)
    given = describe(pods)
    hosts = given.plan.hosts
    wave = PodsWave(
        arguments=given.words,
        workers=max(len(numbers) for numbers in hosts.numbers.values()),
        variables=hosts.pass_env,
        files=read_files(given.files, pods),
        join_timeout_s=ceil(hosts.join_timeout_s),
        drain_s=ceil(given.plan.drain_timeout_s) + _END_S,
        deadline_s=_deadline_s(pods, given),
    )
    return AskedPods(pods, wave, hosts.pass_env, given.lacking)


def of_pods(flags: Table, but: Sequence[str] = ()) -> Table:
    """The flags of a wave, of pods instead of hosts; the help leaves out those without a use, ``but`` some."""
    hidden = {*_NOT_IN_PODS, *_WITHOUT_USE} - {*but}
    return {
        _CLOCKS_AND_FILES if group == OF_HOSTS else group: [
            flag._replace(hidden=flag.hidden or flag.name in hidden) for flag in reworded(some, _ABOUT_PODS)
        ]
        for group, some in flags.items()
    }


def _refused(options: Mapping[str, Any], allowed: Sequence[str]) -> Iterator[str]:
    """Flags that make no sense in a pod, each in a sentence."""
    for name, why in _NOT_IN_PODS.items():
        if options.get(name) and name not in allowed:
            yield f"--{name.replace('_', '-')} is not for pods: {why}."


def _deadline_s(pods: Pods, given: WaveForPods) -> int:
    """The seconds after which Kubernetes ends the Job: what its waves may take, and as long as the results are kept."""
    from inference_benchmarker.engine.pods.objects import KEPT_S

    plan = given.plan
    if pods.deadline_s is not None:
        return ceil(pods.deadline_s)
    if plan.expected_s is None:
        raise BenchmarkError(
            "How long this takes is not known beforehand.", "Give --deadline S: Kubernetes ends the Job then."
        )
    of_a_wave = float(plan.load_timeout_s + plan.warmup_s + plan.drain_timeout_s) + plan.expected_s
    return ceil(float(plan.hosts.join_timeout_s) + given.most_waves * of_a_wave) + KEPT_S
