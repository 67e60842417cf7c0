"""The process of `benchmark check`: loads a factories file and sends one request, both as a wave's worker does.

It also asks the canaries of a search, each twice, where its job says so.

Its only argument is a folder, in which ``result.json`` is written when it is done; a line of JSON on its standard
input says what to do.
"""

from __future__ import annotations

# Locust patches the process, so it comes before everything that opens sockets.
import inference_benchmarker.engine.locust.patched  # noqa: F401 - it patches

# isort: split
import base64
import os
import sys
from dataclasses import replace
from functools import partial
from json import dumps, loads  # by name: the user's code may put other functions into the module
from pathlib import Path
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

import gevent

from inference_benchmarker.answer_size import take_at_most
from inference_benchmarker.engine.endpoint import factories_file
from inference_benchmarker.engine.processes.leftovers import MARK
from inference_benchmarker.engine.worker import statuses
from inference_benchmarker.engine.worker.addresses import Addresses
from inference_benchmarker.engine.worker.canaries import ask_twice
from inference_benchmarker.engine.worker.in_flight import Slot
from inference_benchmarker.engine.worker.process import take_stdin
from inference_benchmarker.engine.worker.raised import in_hand, raised_at
from inference_benchmarker.engine.worker.sessions import invoke_sessions
from inference_benchmarker.engine.worker.target import answer_check, of_models
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.probe import Probe
from inference_benchmarker.plan.pacing import Arrival
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.records.batch import redacted
from inference_benchmarker.records.batch_writer import BatchWriter
from inference_benchmarker.records.error_key import error_key, error_text
from inference_benchmarker.system.files import replacing
from inference_benchmarker.system.host import brand, die_with_parent
from inference_benchmarker.words.redact import excerpt, own_secrets

if TYPE_CHECKING:
    from collections.abc import Callable

LOADED = "loaded"
MAX_ERROR_LENGTH = 2_000
MAX_VALUE_LENGTH = 300
MAX_CANARY_LENGTH = 2_000


def check(plan: WavePlan, loaded_file: Path) -> dict[str, Any]:
    """Send one request; what was seen, and its record as a worker reports it. ``loaded_file`` is made in between."""
    assert plan.factories_file is not None
    timeout = None if plan.request_timeout_s is None else float(plan.request_timeout_s)
    secrets = own_secrets(with_numbers=True)
    addresses = Addresses()
    take_at_most(plan.max_answer_size)
    loaded = factories_file.load(
        plan.factories_file,
        plan.endpoint_name,
        payload_arguments=plan.payload_arguments,
        settings=plan.factory_settings,
    )
    loaded_file.touch()
    probe, writer = Probe(loaded.invoke, heard=loaded.session is not None), BatchWriter(secrets)
    failures: list[BaseException] = []  # kept, with the place where each was raised; there is one at most
    sessions = invoke_sessions(
        replace(loaded, invoke=probe),
        0,
        _nobody,
        writer,
        timeout_s=timeout,
        check=answer_check(plan),
        mix=plan.model_mix,
        on_failure=lambda _index, _key, error: failures.append(error),
    )
    sessions.requests.t0 = monotonic_ns()
    statuses.hook()
    slot, arrivals = Slot(), iter([Arrival(0, 0)])
    slot.take = lambda: next(arrivals, None)
    addresses.begin()
    gevent.spawn(sessions.serve, slot).join()
    cut = partial(excerpt, also=secrets)
    seen = replace(
        probe.seen(loaded.payloads, cut),
        addresses=addresses.found(),
        is_sagemaker=addresses.is_sagemaker,
        hidden_status=next(iter(sessions.requests.hidden), None),
        **_failure(next(iter(failures), None), slot.payload, cut, plan.factories_file.parent),
    )
    return {"seen": seen.to_json(), "batch": base64.b64encode(redacted(writer.take({}))).decode()}


def ask(plan: WavePlan, loaded_file: Path) -> dict[str, Any]:
    """Ask the canaries of a file, within the time for loading; each text, and the first words on one that failed."""
    assert plan.factories_file is not None
    take_at_most(plan.max_answer_size)
    loaded = factories_file.load(
        plan.factories_file,
        plan.endpoint_name,
        payload_arguments=plan.payload_arguments,
        settings=plan.factory_settings,
        canary_seed=plan.seed or 0,
    )
    loaded_file.touch()
    canaries = loaded.canaries if plan.model_mix is None else of_models(loaded.canaries, plan.model_mix)
    texts: list[str | None] = []
    failed = ""
    with gevent.Timeout(float(plan.load_timeout_s), exception=False):
        for payload in canaries:
            try:
                texts.append(ask_twice(loaded.invoke, payload))
            except Exception as error:
                texts.append(None)
                failed = failed or f"{error_key(error)}: {error_text(error)}"
    cut = partial(excerpt, also=own_secrets(with_numbers=True))
    texts += [None] * (len(canaries) - len(texts))
    answers = [
        {"text": text and cut(text, MAX_CANARY_LENGTH), "characters": None if text is None else len(text)}
        for text in texts
    ]
    return {"canaries": answers, "failed": cut(failed, MAX_VALUE_LENGTH)}


def _failure(failure: BaseException | None, payload: Any, cut: Callable[[str, int], str], home: Path) -> dict[str, Any]:
    """The place where the user's code raised, and what it had in its hands then."""
    if failure is None:
        return {}
    values = [cut(text, MAX_VALUE_LENGTH) for text in in_hand(failure, payload, home)]
    return {"raised_at": cut(raised_at(failure, home), MAX_VALUE_LENGTH), "in_hand": values}


def _nobody(*_: object) -> None:
    """Hears of the request in place of Locust's statistics."""


def main() -> None:
    """Do what the folder's job says."""
    folder = Path(sys.argv[1])
    with take_stdin() as parent:
        job = loads(parent.readline())
    die_with_parent(job["parent"])
    brand(os.environ[MARK])
    gevent.get_hub().SYSTEM_ERROR = ()  # a SystemExit in a greenlet of the user's file ends that greenlet, not us
    try:
        do = ask if job["canaries"] else check
        result = do(WavePlan.from_json(job["plan"]), folder / LOADED)
    except BenchmarkError as error:
        clean = partial(excerpt, limit=MAX_ERROR_LENGTH, also=own_secrets(with_numbers=True))
        result = {"error": error.to_json(clean)}
    with replacing(folder / "result.json") as file:
        file.write(dumps(result).encode())


if __name__ == "__main__":
    main()
