"""Writes what the arrivals of a wave send into a file that aiperf reads: a program of its own, as it runs user code.

Standard input carries one JSON line (the factories file, how many arrivals, where to), standard output the one that
says how it ended. What the user's code prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.json_file import UNREADABLE
from inference_benchmarker.engine.endpoint.factories_file import load
from inference_benchmarker.engine.endpoint.json_bodies import json_bodies
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.files import replacing
from inference_benchmarker.system.host import die_with_parent
from server_capacity.aiperf.arguments import RAW, SESSIONS, Requests, is_request

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_INPUTS = 10_000
"""Requests that are made ready for aiperf, or looked at; a longer run sends them again."""


def write_inputs(path: Path, bodies: Iterator[dict[str, Any]]) -> None:
    """Write requests that aiperf sends as they stand (its format inputs_json), a line for each."""
    with replacing(path) as file:
        file.write(b'{"data": [\n')
        for index, body in enumerate(bodies):
            session = {"session_id": str(index), "payloads": [body]}
            file.write((b",\n" if index else b"") + json.dumps(session).encode())
        file.write(b"\n]}\n")


def made_requests(path: Path) -> Requests:
    """The requests of a file that ``write_inputs`` wrote."""
    return Requests(path, SESSIONS, next(written(path)))


def given_requests(path: Path) -> Requests | None:
    """The requests of a user's file, where they stand in it as they are sent; None for aiperf's other forms."""
    for form in (RAW, SESSIONS):
        try:
            body = next(_given_bodies(path, form))
        except (OSError, StopIteration, *UNREADABLE):
            continue
        if is_request(body):
            return Requests(path, form, body)
    return None


def streams_differ(requests: Requests, *, ours: bool) -> bool:
    """Tells whether some of the first requests ask for a stream and others do not. ``ours``: we wrote their file."""
    bodies = written(requests.path) if ours else _given_bodies(requests.path, requests.form)
    try:
        return len({bool(body.get("stream")) for body in islice(bodies, MOST_INPUTS)}) > 1
    except UNREADABLE as error:
        raise BenchmarkError(
            f"{requests.path}: not all lines are requests of the form {requests.form} ({error})."
        ) from None


def written(path: Path) -> Iterator[dict[str, Any]]:
    """The requests of a file that ``write_inputs`` wrote, one at a time."""
    with path.open(encoding="utf-8") as file:
        for line in islice(file, 1, None):
            if line.startswith("{"):
                yield json.loads(line.rstrip(",\n"))["payloads"][0]


def _given_bodies(path: Path, form: str) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        if form == RAW:
            yield from (json.loads(line) for line in file if line.strip())
        else:
            yield from (body for session in json.load(file)["data"] for body in session["payloads"])


def main() -> None:
    """Do what the line on standard input says."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    asked = json.loads(sys.stdin.readline())
    die_with_parent(asked["parent"])
    said = {}
    try:
        factories = Path(asked["factories_file"])
        endpoint = load(
            factories,
            asked["endpoint_name"],
            payload_arguments=asked["payload_arguments"],
            settings=asked["settings"],
        )
        write_inputs(Path(asked["path"]), json_bodies(endpoint, asked["seed"], asked["arrivals"]))
    except BenchmarkError as error:
        said = {"problem": str(error)}
    answer.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
