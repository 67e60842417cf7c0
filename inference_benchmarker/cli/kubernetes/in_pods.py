"""``benchmark --kubernetes``: a wave from pods, which this command makes, follows and removes."""

from __future__ import annotations

import os
import secrets
import string
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from inference_benchmarker.cli.capacity.capacity import search_of, search_options
from inference_benchmarker.cli.capacity.capacity_flags import AUTO, CAPACITY_FLAGS
from inference_benchmarker.cli.core.address_flags import without_addresses
from inference_benchmarker.cli.core.arguments import Parser, command_parser
from inference_benchmarker.cli.core.flags import Flag
from inference_benchmarker.cli.core.output_flags import OUTPUT_DIR
from inference_benchmarker.cli.core.terminal import passing, say, say_nothing
from inference_benchmarker.cli.kubernetes.bringing_home import Abroad, bring_home, pods_of
from inference_benchmarker.cli.wave.asked_pods import asked_pods, of_pods
from inference_benchmarker.cli.wave.pods_flags import OF_PODS, PODS_FLAGS
from inference_benchmarker.cli.wave.pods_wave import WAVE, CommandForPods
from inference_benchmarker.cli.wave.wave import wave_options
from inference_benchmarker.cli.wave.wave_flags import WAVE_FLAGS

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from inference_benchmarker.cli.wave.asked_pods import AskedPods
    from inference_benchmarker.engine.pods.kubectl import Kubectl

_ABOUT = """\
Sends a wave from the pods of a Kubernetes cluster, through your own kubectl:
makes a Job, follows it, fetches its results, and removes it.

  benchmark --kubernetes --pods 8 --workers 32 --pod-image IMAGE \\
      --factories-file my_endpoint.py --client-rps 40000 --obs-time 60

Ctrl-C ends the wave early, with its report. If this command ends otherwise, the
wave goes on: `benchmark kubernetes fetch JOB` follows it and fetches its results.
"""
_EPILOG = """\
exit codes: those of the wave: 0 VALID, every limit met; 1 a limit was missed;
2 bad input, or the pods did not start; 3 INVALID, or the results were lost;
130 interrupted
"""
_ABOUT_SEARCH = """\
Finds the highest rate at which an endpoint meets every limit, with load from the
pods of a Kubernetes cluster. The whole search is one Job: its pods stay for all
waves, and its folder is fetched.

  benchmark capacity --kubernetes --pods 4 --pod-image IMAGE --deadline 1h \\
      --factories-file my_endpoint.py --slo 'p99<200ms'
"""
_EPILOG_SEARCH = """\
exit codes: those of the search: 0 found; 1 no rate meets the limits, or
inconclusive; 2 bad input, or the pods did not start; 3 the client was the limit,
or the results were lost; 130 interrupted
"""
_SEARCH = CommandForPods(("capacity",), search_of)
_FLAG = Flag("--kubernetes", None, "send the load from pods")
_OWN_NAME = "name of the Job, and of everything that belongs to it (default: a new one)"
_DEADLINE = "Kubernetes ends the Job after this time, even if it is not done, and its results with it; always given"
_LETTERS = string.ascii_lowercase + string.digits


def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    from inference_benchmarker.engine.pods.kubectl import Kubectl
    from inference_benchmarker.engine.pods.pods import JOB

    is_search = arguments[0] == _SEARCH.name[0]
    if is_search:
        parser = search_in_pods_parser()
        options, addresses, problems = search_options(parser, arguments[1:])
        options["workers"] = None if options["workers"] == AUTO else options["workers"]
    else:
        parser = in_pods_parser()
        rest, addresses = without_addresses(arguments, parser.flags)
        options, problems = wave_options(parser, rest, addresses)
    output_dir = Path(options["output_dir"] or OUTPUT_DIR).expanduser()
    options["output_dir"] = None
    own_name = f"{JOB}-{''.join(secrets.choice(_LETTERS) for _ in range(5))}"
    asked = asked_pods(parser, options, problems, addresses, own_name, command=_SEARCH if is_search else WAVE)
    if asked.lacking:
        say(asked.lacking_text)
    passing("Asking the cluster…", quiet=options["quiet"])
    kubectl = Kubectl.of_user(asked.pods.namespace)
    with ExitStack() as following:
        job = _begun(kubectl, asked, options, following)
        return bring_home(
            Abroad(
                kubectl=kubectl,
                job=asked.pods.job,
                uid=job["metadata"]["uid"],
                output_dir=output_dir,
                as_json=bool(options["json"]),
                quiet=bool(options["quiet"]),
                may_end=True,
            )
        )


def in_pods_parser() -> Parser:
    """Its flags, and its help."""
    return command_parser(
        "benchmark --kubernetes",
        {OF_PODS: _own_flags(), **of_pods(WAVE_FLAGS, but="output_dir")},
        usage="benchmark --kubernetes --pods N [URL | --factories-file FILE] [options]",
        description=_ABOUT,
        epilog=_EPILOG,
    )


def search_in_pods_parser() -> Parser:
    """The flags of a search from pods, and its help."""
    return command_parser(
        "benchmark capacity --kubernetes",
        {OF_PODS: _own_flags(deadline=_DEADLINE), **of_pods(CAPACITY_FLAGS, but="output_dir")},
        usage="benchmark capacity --kubernetes --pods N --deadline S [URL | --factories-file FILE] [options]",
        description=_ABOUT_SEARCH,
        epilog=_EPILOG_SEARCH,
    )


def _own_flags(**abouts: str) -> list[Flag]:
    """The flags of the pods; ``abouts``: what is said of some here."""
    named = {flag.name: flag for flag in PODS_FLAGS[OF_PODS] if flag.name != "keys_dir"}
    named["job_name"] = named["job_name"]._replace(about=_OWN_NAME, default=None)
    named |= {name: named[name]._replace(about=about, default=None) for name, about in abouts.items()}
    return [_FLAG, *named.values()]


def _begun(kubectl: Kubectl, asked: AskedPods, options: dict[str, Any], following: ExitStack) -> dict[str, Any]:
    """The Job, whose pods have all started. Where they do not, nothing is left of it.

    From then on ``following`` counts interrupts: one that comes before anybody follows the wave ends it all the same.
    """
    from inference_benchmarker.engine.pods.making import check_rights, making
    from inference_benchmarker.engine.pods.waiting import await_pods
    from inference_benchmarker.engine.processes.interrupts import counting_interrupts

    tell: Callable[[str], None] = say_nothing if options["quiet"] else say
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
