"""``benchmark kubernetes``: the Jobs of waves from pods: their results are fetched, and they are removed."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.arguments import Parser
from inference_benchmarker.cli.core.output_flags import OUTPUT_DIR
from inference_benchmarker.cli.kubernetes.bringing_home import Abroad, bring_home
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.exit_codes import OK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from inference_benchmarker.engine.pods.kubectl import Kubectl

_HELP = """\
usage: benchmark kubernetes COMMAND [options]

Manages the Jobs of `benchmark --kubernetes` and `benchmark manifests`, using
your kubectl. Commands (each with --help):
  fetch    follow a Job, running or finished, and fetch its results
  clean    remove Jobs and what `benchmark --kubernetes` made
  attend   internal: `fetch` runs it in the coordinating pod
"""
_ABOUT = {
    "fetch": (
        "Follows the wave of a Job until it has ended, fetches its results, prints their report, and removes the\n"
        "Job. It skips what an earlier command has fetched. Ctrl-C ends this command; the wave goes on."
    ),
    "clean": (
        "Removes a Job, with its pods and what `benchmark --kubernetes` made for it. Without JOB, it removes\n"
        "every Job that has ended or never began, including those of `benchmark manifests`; delete their Secret,\n"
        "ConfigMap and Service yourself."
    ),
    "attend": "Serves `benchmark kubernetes fetch`, which runs it in the coordinating pod with `kubectl exec`.",
}
_EPILOGS = {
    "fetch": (
        "exit codes: those of the wave: 0 VALID, no limit missed; 1 VALID, a limit missed; 2 bad input; 3 INVALID, or\n"
        "the results were lost; 130 the wave was interrupted, or you ended this command\n"
    ),
    "clean": "exit codes: 0 removed; 2 not removed (the reason is given)\n",
    "attend": "exit codes: 0 nobody needs it any more\n",
}
_ENDED = ("Complete", "Failed")


def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    command, rest = (arguments or ["--help"])[0], arguments[1:]
    if command in ("-h", "--help"):
        print(_HELP, end="")
        return OK
    if command not in _ABOUT:
        commands = ", ".join(_ABOUT)
        raise BenchmarkError(f"There is no command {command!r} of benchmark kubernetes.", f"Commands are {commands}.")
    does: dict[str, Callable[[Namespace], int]] = {"fetch": _fetch, "clean": _clean, "attend": _attend}
    return does[command](kubernetes_parser(command).parse_args(rest))


def kubernetes_parser(command: str) -> Parser:
    """The arguments and help of a command."""
    parser = Parser(
        prog=f"benchmark kubernetes {command}",
        description=_ABOUT[command],
        epilog=_EPILOGS[command],
        allow_abbrev=False,
    )
    if command == "attend":
        return parser
    if command == "fetch":
        parser.add_argument("job", metavar="JOB", help="name of the Job")
    else:
        named = "name of the Job (default: all that have ended or never began)"
        parser.add_argument("job", metavar="JOB", nargs="?", help=named)
    parser.add_argument("--namespace", metavar="NAME", help="namespace of the Job (default: kubectl's)")
    if command == "fetch":
        where = "where the run directory goes (default .tmp)"
        parser.add_argument("--output-dir", metavar="DIR", type=Path, default=OUTPUT_DIR, help=where)
        parser.add_argument("--json", action="store_true", help="print the summary as JSON")
        parser.add_argument("--quiet", action="store_true", help="print no progress")
    return parser


def _fetch(options: Namespace) -> int:
    from inference_benchmarker.engine.pods.kubectl import Kubectl
    from inference_benchmarker.engine.pods.making import check_rights

    kubectl = Kubectl.of_user(options.namespace)
    check_rights(kubectl)
    job = _job(kubectl, options.job)
    if job.get("spec", {}).get("suspend"):
        start = kubectl.command("patch", "job", options.job, "--type=merge", '--patch={"spec": {"suspend": false}}')
        raise BenchmarkError(f"Job {options.job} is suspended: its wave has not begun.", f"Start it: {start}")
    return bring_home(
        Abroad(
            kubectl=kubectl,
            job=options.job,
            uid=job["metadata"]["uid"],
            output_dir=options.output_dir.expanduser(),
            output=Namespace(json=options.json, quiet=options.quiet, markdown=None, junit=None),
            may_end=False,
        )
    )


def _clean(options: Namespace) -> int:
    from inference_benchmarker.engine.pods.kubectl import Kubectl
    from inference_benchmarker.engine.pods.objects import NAME, OURS

    kubectl = Kubectl.of_user(options.namespace)
    if options.job is not None:
        names = [str(_job(kubectl, options.job)["metadata"]["name"])]
    else:
        found = kubectl.read("jobs", f"--selector={NAME}={OURS}").get("items") or []
        names = [str(each["metadata"]["name"]) for each in found if not _is_running(each)]
        for name in (str(each["metadata"]["name"]) for each in found if _is_running(each)):
            print(f"Job {name} is running: `benchmark kubernetes clean {name}` removes it.", flush=True)
    for name in names:
        kubectl.delete("job", name)
        print(f"✓ Job {name} is removed.", flush=True)
    if not names:
        print("✓ No Job has ended.", flush=True)
    return OK


def _attend(_: Namespace) -> int:
    from inference_benchmarker.engine.pods.attendant import attend

    attend()
    return OK


def _job(kubectl: Kubectl, name: str) -> dict[str, Any]:
    """A Job of this tool's; BenchmarkError where there is none of that name."""
    from inference_benchmarker.engine.pods.kubectl import KubectlError
    from inference_benchmarker.engine.pods.objects import NAME, OURS

    try:
        found = kubectl.read("job", name)
    except KubectlError as error:
        if not error.is_absence:
            raise
        where = f" in namespace {kubectl.namespace}" if kubectl.namespace else ""
        hint = f"{kubectl.command('get', 'jobs', f'--selector={NAME}={OURS}')} lists those that there are."
        raise BenchmarkError(f"There is no Job {name}{where}.", hint) from None
    if found["metadata"].get("labels", {}).get(NAME) != OURS:
        raise BenchmarkError(f"Job {name} is none of a wave: it lacks the label {NAME}={OURS}.")
    return found


def _is_running(job: dict[str, Any]) -> bool:
    return not job["spec"].get("suspend") and not any(_conditions(job))


def _conditions(job: dict[str, Any]) -> Iterator[str]:
    for each in job.get("status", {}).get("conditions") or []:
        if each["type"] in _ENDED and each["status"] == "True":
            yield each["type"]
