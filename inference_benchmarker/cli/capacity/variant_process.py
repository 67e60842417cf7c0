"""The process that makes an endpoint and searches its variants, for a ranking.

Its job is a line of JSON on standard input, whose end is that of whoever gave it; it tells each result in such a line.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.capacity.capacity_flags import make_question
from inference_benchmarker.cli.capacity.searching import refuse_scaling, removed_if_empty, search, served
from inference_benchmarker.cli.core.pages import draw_capacity
from inference_benchmarker.cli.core.redacting_stream import redacted_streams
from inference_benchmarker.cli.core.terminal import say, say_nothing
from inference_benchmarker.errors import BenchmarkError, interrupt
from inference_benchmarker.exit_codes import INTERRUPTED, OK
from inference_benchmarker.system.memory import give_back_large_blocks

if TYPE_CHECKING:
    from collections.abc import Callable

    from server_capacity.experiments.measurements.question import Question

    Tell = Callable[[str], None]

PRESS_AGAIN_S = 5.0


def main() -> int:
    """Do the job, and give the exit code."""
    line = sys.stdin.readline()
    results = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the user's code prints is no result
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    give_back_large_blocks()
    try:
        with redacted_streams():
            _measure(json.loads(line), lambda told: print(json.dumps(told), file=results, flush=True))
    except (KeyboardInterrupt, BrokenPipeError):  # nobody hears the result any more
        return INTERRUPTED
    return OK


def _end_with_parent() -> None:
    """Once nobody holds the other end of standard input any more: as Ctrl-C does, until this process has ended."""
    while os.read(0, 4096):
        pass
    while True:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(PRESS_AGAIN_S)


def _measure(job: dict[str, Any], tell_result: Callable[[dict[str, Any]], None]) -> None:
    from server_capacity.experiments.capacity.run import make_folder

    options, places = job["options"], list(range(len(job["payloads"])))
    tell = _tell_of(job)
    try:
        questions = [_question(job, payload, name) for payload, name in zip(job["payloads"], job["names"], strict=True)]
        if job["arguments"] is None:
            refuse_scaling(questions[0], options)
        folder = make_folder(questions[0])
        with (
            removed_if_empty(folder),
            served(questions[0], job["arguments"], job["known"], folder, tell) as first,
        ):
            for place, question in enumerate(questions):
                own = folder if place == 0 else make_folder(question)
                plan = replace(question.plan, endpoint_name=first.plan.endpoint_name)
                asked = replace(question, plan=plan, endpoint=first.endpoint, lost=first.lost)
                told = _searched(asked, options, own, tell)
                places.remove(place)
                tell_result({"place": place, **told})
                if told.get("interrupted"):
                    return
    except BenchmarkError as error:
        for place in places:
            tell_result({"place": place, "failed": str(error)})


def _tell_of(job: dict[str, Any]) -> Tell:
    """Whoever hears how it goes on; beside others with the endpoint's name."""
    if job["silent"]:
        return say_nothing
    return (lambda text: say(f"{job['label']}: {text}")) if job["label"] else say


def _question(job: dict[str, Any], payload: dict[str, Any] | None, name: str) -> Question:
    question = make_question(job["options"], [])
    plan = replace(question.plan, payload_arguments=payload, output_dir=Path(job["folder"]), name=name)
    return replace(question, plan=plan, most_workers=min(question.most_workers, job["cores"]))


def _searched(question: Question, options: dict[str, Any], folder: Path, tell: Tell) -> dict[str, Any]:
    """The result of one search; a failure of it leaves the endpoint for the next one."""
    try:
        with removed_if_empty(folder):
            found = search(question, options, folder, tell)
    except BenchmarkError as error:
        return {"failed": str(error)}
    draw_capacity(found, folder, tell)
    return {"folder": folder.name, "interrupted": found.exit_code == INTERRUPTED}


if __name__ == "__main__":
    sys.exit(main())
