"""Everything that may be wrong with the endpoint of a wave plan, with its files and with its recording."""

from __future__ import annotations

import errno
import stat
from typing import TYPE_CHECKING

from inference_benchmarker.errors import Problem
from inference_benchmarker.plan.hosts import is_below
from inference_benchmarker.plan.load import ClosedLoop, OpenLoop
from inference_benchmarker.url import url_problem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inference_benchmarker.plan.plan import WavePlan

_NO_ENDPOINT = Problem(
    ("factories_file", "locust_file"),
    "No endpoint: give its URL, --factories-file FILE or --locust-file FILE (or --demo to try the tool).",
)


def problems_of_files(plan: WavePlan, *, endpoint_needed: bool) -> Iterator[Problem]:
    """The problems of the endpoint's files and of the recording; ``endpoint_needed``: without an endpoint, too."""
    if endpoint_needed and not (plan.factories_file or plan.locust_file):
        yield _NO_ENDPOINT
    yield from _endpoint_problems(plan)
    yield from _recording_problems(plan)
    yield from _shipped_problems(plan)


def is_unread(plan: WavePlan) -> bool:
    """Tells whether a recording says how long the wave lasts, and has not been read yet."""
    return isinstance(plan.load, OpenLoop) and plan.load.replay is not None and plan.load.recording is None


def session_problem(plan: WavePlan, *, has_sessions: bool) -> tuple[str, str] | None:
    """The first thing in a plan that does not go with a file that has sessions, or has none; and what to try."""
    load, closed = plan.load, isinstance(plan.load, ClosedLoop)
    if plan.conversations is not None and not has_sessions:
        return (
            "--conversations needs the URL of an OpenAI-compatible chat API, or a file with a session_factory.",
            "For rows that a payload_factory sends give --replay.",
        )
    if not has_sessions:
        if load.think is not None and not closed:
            return (
                "--think-time is for --concurrency, and for a file with a session_factory: in the open loop requests "
                "arrive whether or not users think.",
                "",
            )
        return None
    if plan.counts_requests:
        return (
            "--records none only counts requests; the result of a session is computed from the records of its turns.",
            "Leave --records out.",
        )
    return None


def instead_of_a_file(path: Path) -> str:
    """The words for what a path names that is no file."""
    try:
        mode = path.stat().st_mode
    except PermissionError as error:
        return f"this user may not read it ({error.strerror})"
    except (OSError, ValueError) as error:
        circle = getattr(error, "errno", None) == errno.ELOOP
        return "this is a link that leads back to itself" if circle else "there is no such file"
    if stat.S_ISDIR(mode):
        return "this is a folder; give the file in it"
    return "this is a pipe or a device, which cannot be read twice; give a file"


def _endpoint_problems(plan: WavePlan) -> Iterator[Problem]:
    if plan.factories_file is not None and plan.locust_file is not None:
        text = "Give either --factories-file or --locust-file, not both."
        yield Problem(("factories_file", "locust_file"), text)
    files = {"factories_file": plan.factories_file, "locust_file": plan.locust_file}
    for name, path in files.items():
        if path is not None and not _is_file(path):
            yield Problem((name,), f"--{name.replace('_', '-')} {path}: {instead_of_a_file(path)}.")
    if plan.endpoint_name is not None and not plan.endpoint_name.strip():
        yield Problem(("endpoint_name",), "--endpoint-name must not be empty.")
    if plan.endpoint_name is not None and plan.factories_file is None and plan.locust_file is not None:
        text = "--endpoint-name goes to invoke_factory; with --locust-file use --url."
        yield Problem(("endpoint_name", "factories_file"), text)
    if plan.locust_file is not None:
        yield from _locust_file_problems(plan)
    if plan.url is not None:
        yield from _url_problems(plan, plan.url)


def _locust_file_problems(plan: WavePlan) -> Iterator[Problem]:
    """The problems of parts that need a factories file."""
    if plan.retries.asked:
        text = (
            "--client-timeout and --client-retries need a factories file, whose single requests the tool sees; a task "
            "of a --locust-file must retry by itself."
        )
        yield Problem(("locust_file", "retries", "timeout_s"), text)
    if plan.expect:
        text = "--expect needs a factories file or a URL: the tool sees no answers of a --locust-file's tasks."
        yield Problem(("locust_file", "expect"), text)
    if plan.model_mix is not None:
        text = "--model-mix is for a URL or a factories file; a task of a --locust-file names its model itself."
        yield Problem(("locust_file", "model_mix"), text)
    if plan.payload_arguments is not None and plan.factories_file is None:
        yield Problem(("payload_arguments",), "payload_arguments go to payload_factory, and a --locust-file has none.")
    if plan.factory_settings and plan.factories_file is None:
        yield Problem(("factory_settings",), "--set is for a factories file, and a --locust-file has no settings.")


def _url_problems(plan: WavePlan, url: str) -> Iterator[Problem]:
    if plan.locust_file is None:
        text = "--url is the host of a --locust-file; a factories file names its endpoint itself."
        yield Problem(("url", "locust_file"), text)
    if problem := url_problem("--url", url):
        yield Problem(("url",), problem)


def _recording_problems(plan: WavePlan) -> Iterator[Problem]:
    if isinstance(plan.load, OpenLoop) and plan.load.replay is not None and is_unread(plan):
        file = plan.load.replay.file
        if not _is_file(file):
            yield Problem(("file",), f"--replay {file}: {instead_of_a_file(file)}.")


def _shipped_problems(plan: WavePlan) -> Iterator[Problem]:
    """The problems of the files that go to the hosts with the endpoint's."""
    requirements = () if plan.hosts.requirements is None else (plan.hosts.requirements,)
    for flag, name, paths in (
        ("--with-file", "with_files", filter(is_below, plan.hosts.with_files)),
        ("--requirements", "requirements", requirements),
    ):
        for path in paths:
            if not _is_file(path):
                yield Problem((name,), f"{flag} {path}: {instead_of_a_file(path)}.")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name too long, a folder that may not be read
        return False
