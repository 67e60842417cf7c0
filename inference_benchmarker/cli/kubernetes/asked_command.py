"""A command with ``--kubernetes`` as its flags ask for it: a wave or a search, and what its results go to."""

from __future__ import annotations

import secrets
import string
from argparse import Namespace
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.capacity.capacity import search_of, search_options
from inference_benchmarker.cli.capacity.capacity_flags import AUTO, CAPACITY_FLAGS
from inference_benchmarker.cli.capacity.verifying import as_elsewhere, refuse_several
from inference_benchmarker.cli.core.address_flags import without_addresses
from inference_benchmarker.cli.core.arguments import Parser, command_parser
from inference_benchmarker.cli.core.flags import Flag, reworded
from inference_benchmarker.cli.core.output_flags import OUTPUT_DIR
from inference_benchmarker.cli.core.terminal import say
from inference_benchmarker.cli.wave.asked_pods import asked_pods, of_pods
from inference_benchmarker.cli.wave.pods_flags import OF_PODS, PODS_FLAGS
from inference_benchmarker.cli.wave.pods_wave import WAVE, CommandForPods, wave_for_pods
from inference_benchmarker.cli.wave.wave import wave_options
from inference_benchmarker.cli.wave.wave_flags import WAVE_FLAGS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inference_benchmarker.cli.core.flags import Table
    from inference_benchmarker.cli.wave.asked_pods import AskedPods
    from inference_benchmarker.cli.wave.pods_wave import WaveForPods
    from inference_benchmarker.engine.pods.pods import Pods

_ABOUT = """\
Sends a wave from the pods of a Kubernetes cluster, using your kubectl:
makes a Job, follows it, fetches its results, and removes it.

  benchmark --kubernetes --pods 8 --workers 32 --pod-image IMAGE \\
      --factories-file my_endpoint.py --client-rps 40000 --obs-time 60

Ctrl-C ends the wave early, with its report. If this command is killed or fails, the
wave goes on: `benchmark kubernetes fetch JOB` follows it and fetches its results.
"""
_EPILOG = """\
exit codes: those of the wave: 0 VALID, no limit missed; 1 VALID, a limit missed;
2 bad input, or the pods did not start; 3 INVALID, or the results were lost;
130 interrupted
"""
_ABOUT_SEARCH = """\
Finds the highest rate at which an endpoint meets every limit, with load from the
pods of a Kubernetes cluster, or verifies a plan. All of it is one Job: its pods
stay for all waves, and its folder is fetched.

  benchmark capacity --kubernetes --pods 4 --pod-image IMAGE --deadline 1h \\
      --factories-file my_endpoint.py --slo 'p99<200ms'
  benchmark capacity --kubernetes --pods 4 --pod-image IMAGE --deadline 1h \\
      --verify .tmp/<timestamp>_plan --endpoint-name NAME
"""
_EPILOG_SEARCH = """\
exit codes: those of the search: 0 found; 1 no rate meets the limits, or
inconclusive; 2 bad input, or the pods did not start; 3 limited by the client,
or the results were lost; 130 interrupted
"""
_SEARCH = CommandForPods(("capacity",), search_of)
_ALLOWED = ("interactive",)  # since this command has the keys
_FLAG = Flag("--kubernetes", None, "send the load from pods")
_OWN_NAME = "name of the Job, and of everything that belongs to it (default: a new one)"
_DEADLINE = "Kubernetes ends the Job after this time, even if it is not done, and its results with it; always given"
_VERIFY = (
    "verify a plan (its folder or fleet_plan.json) on an endpoint that has its instances: send it the plan's target "
    "rate, with Poisson arrivals, until the outcome is clear (or for --time)"
)
_LETTERS = string.ascii_lowercase + string.digits


@dataclass(frozen=True, slots=True)
class AskedCommand:
    """A command of pods. ``output``: of its report, with ``json``, ``quiet``, and files of a comparison.

    ``is_steered``: this terminal has the keys that change its rate.
    """

    pods: AskedPods
    output_dir: Path
    output: Namespace
    is_steered: bool = False


def asked_command(
    options: dict[str, Any],
    problems: list[str],
    describe: Callable[[Pods], WaveForPods],
    allowed: Sequence[str] = (),
    **files: Path | None,
) -> AskedCommand:
    """The command that the options describe; ``describe``: its waves. BenchmarkError with all that is wrong.

    ``allowed``: flags that are not refused, since this command does what no pod can.
    """
    from inference_benchmarker.engine.pods.pods import JOB

    output_dir = Path(options["output_dir"] or OUTPUT_DIR).expanduser()
    options["output_dir"] = None
    own_name = f"{JOB}-{''.join(secrets.choice(_LETTERS) for _ in range(5))}"
    output = Namespace(json=bool(options["json"]), quiet=bool(options["quiet"]), **files)
    pods = asked_pods(options, problems, describe, own_name, allowed=allowed)
    return AskedCommand(pods, output_dir, output, is_steered=bool(options.get("interactive")))


def wave(arguments: list[str]) -> AskedCommand:
    """A wave."""
    parser = in_pods_parser()
    rest, addresses = without_addresses(arguments, parser.flags)
    options, problems = wave_options(parser, rest, addresses)
    return asked_command(options, problems, partial(wave_for_pods, parser, options, addresses, WAVE), _ALLOWED)


def search(arguments: list[str]) -> AskedCommand:
    """A search, or the proof of a plan."""
    parser = search_in_pods_parser()
    refuse_several(arguments)
    options, addresses, problems = search_options(parser, arguments)
    options["workers"] = None if options["workers"] == AUTO else options["workers"]

    def describe(pods: Pods) -> WaveForPods:
        return wave_for_pods(parser, as_elsewhere(options, addresses, say), addresses, _SEARCH, pods)

    return asked_command(options, problems, describe)


def in_pods_parser() -> Parser:
    """Its flags, and its help."""
    return command_parser(
        "benchmark --kubernetes",
        {OF_PODS: own_flags(), **of_pods(WAVE_FLAGS, but=(*_ALLOWED, "output_dir"))},
        usage="benchmark --kubernetes --pods N [URL | --factories-file FILE] [options]",
        description=_ABOUT,
        epilog=_EPILOG,
    )


def search_in_pods_parser() -> Parser:
    """The flags of a search from pods, and its help."""
    return command_parser(
        "benchmark capacity --kubernetes",
        {OF_PODS: own_flags(deadline=_DEADLINE), **_said_anew(of_pods(CAPACITY_FLAGS, but=("output_dir",)))},
        usage="benchmark capacity --kubernetes --pods N --deadline S [URL | --factories-file FILE] [options]",
        description=_ABOUT_SEARCH,
        epilog=_EPILOG_SEARCH,
    )


def _said_anew(flags: Table) -> Table:
    """Those of a search, of which --verify makes no endpoint here."""
    return {title: reworded(some, {"verify": _VERIFY}) for title, some in flags.items()}


def own_flags(**abouts: str) -> list[Flag]:
    """The flags of the pods; ``abouts``: what is said of some here."""
    named = {flag.name: flag for flag in PODS_FLAGS[OF_PODS] if flag.name != "keys_dir"}
    named["job_name"] = named["job_name"]._replace(about=_OWN_NAME, default=None)
    named |= {name: named[name]._replace(about=about, default=None) for name, about in abouts.items()}
    return [_FLAG, *named.values()]
