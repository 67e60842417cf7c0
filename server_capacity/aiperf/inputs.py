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

from inference_benchmarker.engine.endpoint import load
from inference_benchmarker.engine.json_bodies import json_bodies
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.host import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Iterator


def write_inputs(path: Path, bodies: Iterator[dict[str, Any]]) -> None:
    """Write requests that aiperf sends as they stand (its format inputs_json), a line for each."""
    with path.open("w", encoding="utf-8") as file:
        file.write('{"data": [\n')
        for index, body in enumerate(bodies):
            session = {"session_id": str(index), "payloads": [body]}
            file.write((",\n" if index else "") + json.dumps(session))
        file.write("\n]}\n")


def first_input(path: Path) -> dict[str, Any]:
    """The first request of a file that ``write_inputs`` wrote."""
    return next(_written(path))


def streams_differ(path: Path) -> bool:
    """Tells whether some requests of such a file ask for a stream and others do not."""
    return len({bool(body.get("stream")) for body in _written(path)}) > 1


def _written(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in islice(file, 1, None):
            if line.startswith("{"):
                yield json.loads(line.rstrip(",\n"))["payloads"][0]


def main() -> None:
    """Do what the line on standard input says."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    asked = json.loads(sys.stdin.readline())
    die_with_parent(asked["parent"])
    said = {}
    try:
        factories = Path(asked["factories_file"])
        endpoint = load(factories, asked["endpoint_name"])
        write_inputs(Path(asked["path"]), json_bodies(endpoint, asked["seed"], asked["arrivals"]))
    except BenchmarkError as error:
        said = {"problem": str(error)}
    answer.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
