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
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from inference_benchmarker.cli.capacity.capacity_flags import make_question
from inference_benchmarker.cli.capacity.searching import (
    asked_canaries,
    cleaned,
    refuse_scaling,
    removed_if_empty,
    search,
    served,
    tidied,
)
from inference_benchmarker.cli.core.pages import draw_capacity
from inference_benchmarker.cli.core.redacting_stream import redacted_streams
from inference_benchmarker.cli.core.terminal import say, say_nothing
from inference_benchmarker.errors import BenchmarkError, NoWaveError, interrupt
from inference_benchmarker.exit_codes import INTERRUPTED, INVALID, MISSED, OK
from inference_benchmarker.system.memory import give_back_large_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from server_capacity.experiments.measurements.question import Question
    from server_capacity.results.types.capacity import CapacityResult

    Tell = Callable[[str], None]

PRESS_AGAIN_S = 5.0


class Searched(NamedTuple):
    """A search, and its folder."""

    folder: Path
    result: CapacityResult


class Unsearched(NamedTuple):
    """The reason why there is no search, and the exit code that this has."""

    reason: str
    code: int = MISSED


SearchOrReason = Searched | Unsearched


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
            _measure(json.loads(line), lambda result: print(json.dumps(result), file=results, flush=True))
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

    try:
        questions = [_question(job, payload, name) for payload, name in zip(job["payloads"], job["names"], strict=True)]
        if job["arguments"] is None:
            refuse_scaling(questions[0], job["options"])
        folder = make_folder(questions[0])
    except BenchmarkError as error:
        for place in range(len(job["payloads"])):
            tell_result({"place": place, "failed": str(error)})
        return
    results: dict[int, SearchOrReason] = {}
    try:
        with closing(_searches(job, questions, folder)) as searches:
            for place, found in searches:
                results[place] = found
                tell_result({"place": place, **_for_parent(found)})
    finally:  # whether all was removed is known by now
        add_clean_up(folder, results, tell_result)


def _searches(job: dict[str, Any], questions: list[Question], folder: Path) -> Generator[tuple[int, SearchOrReason]]:
    """The outcome of each search of an endpoint as it ends, then the reason for each that could not begin."""
    from server_capacity.experiments.capacity.run import make_folder

    options, tell, begun = job["options"], _tell_of(job), 0
    try:
        with (
            removed_if_empty(folder),
            served(questions[0], job["arguments"], job["known"], folder, tell) as first,
        ):
            canaries = asked_canaries(first.plan, tell) if job["compared"] else None
            for place, question in enumerate(questions):
                own = folder if place == 0 else make_folder(question)
                plan = replace(question.plan, endpoint_name=first.plan.endpoint_name)
                asked = replace(question, plan=plan, endpoint=first.endpoint, lost=first.lost, canaries=canaries)
                found = _searched(asked, options, own, tell)
                begun = place + 1
                yield place, found
                if isinstance(found, Searched) and found.result.exit_code == INTERRUPTED:
                    return
    except (BenchmarkError, NoWaveError) as error:
        for place in range(begun, len(questions)):
            yield place, unsearched(error)


def unsearched(error: BenchmarkError | NoWaveError) -> Unsearched:
    """The reason as a ranking has it: what a user can mend, or a process that was lost."""
    return Unsearched(error.event, INVALID) if isinstance(error, NoWaveError) else Unsearched(str(error))


def _for_parent(found: SearchOrReason) -> dict[str, Any]:
    if isinstance(found, Unsearched):
        return {"failed": found.reason, "code": found.code}
    return {"folder": found.folder.name, "interrupted": found.result.exit_code == INTERRUPTED}


def add_clean_up(
    folder: Path, results: Mapping[int, SearchOrReason], tell_result: Callable[[dict[str, Any]], None]
) -> None:
    """Add to each result what became of what was made for all of them, of which ``folder`` has the list.

    Each that changes is reported again: the ranking has a digest of it. Where nobody hears any more, none changes.
    """
    from server_capacity.results.types.result_status import NOT_REMOVED

    if (clean_up := cleaned(folder)).state is None:
        return
    for place, found in results.items():
        if isinstance(found, Searched):
            tell_result({"place": place, **_for_parent(found)})  # raises where the parent was killed
            made = tidied(found.folder, found.result, clean_up)
            tell_result({"place": place, **_for_parent(Searched(found.folder, made))})
        elif clean_up.state == "failed":
            reason = f"{found.reason} Something that was created for it {NOT_REMOVED}."
            tell_result({"place": place, "failed": reason, "code": INVALID})


def _tell_of(job: dict[str, Any]) -> Tell:
    """Whoever hears how it goes on; beside others with the endpoint's name."""
    if job["silent"]:
        return say_nothing
    return (lambda text: say(f"{job['label']}: {text}")) if job["label"] else say


def _question(job: dict[str, Any], payload: dict[str, Any] | None, name: str) -> Question:
    question = make_question(job["options"], [])
    plan = replace(question.plan, payload_arguments=payload, output_dir=Path(job["folder"]), name=name)
    return replace(question, plan=plan, most_workers=min(question.most_workers, job["cores"]))


def _searched(question: Question, options: dict[str, Any], folder: Path, tell: Tell) -> SearchOrReason:
    """The result of one search; a failure of it leaves the endpoint for the next one."""
    try:
        with removed_if_empty(folder):
            found = search(question, options, folder, tell)
    except (BenchmarkError, NoWaveError) as error:
        return unsearched(error)
    draw_capacity(found, folder, tell)
    return Searched(folder, found)


if __name__ == "__main__":
    sys.exit(main())
