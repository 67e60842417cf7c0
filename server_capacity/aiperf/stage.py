"""aiperf as a stage of a run: its requests made before any load is sent, the rest before it, the run, its result."""

from __future__ import annotations

import json
import math
import os
import secrets
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.child_logs import child_log
from inference_benchmarker.engine.launch import facts_of, make_run_dir
from inference_benchmarker.engine.leftovers import MARK, end_leftovers, new_mark
from inference_benchmarker.engine.processes import child_environment, counting_interrupts, until_interrupted
from inference_benchmarker.engine.scratch import scratch_folder
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.exit_codes import INTERRUPTED, INVALID, OK, worst_exit_code
from inference_benchmarker.facts.server_metric import collected
from inference_benchmarker.plan.plan import OpenLoop, WavePlan
from inference_benchmarker.redact import redact, secret_values
from inference_benchmarker.wave.run_dir import OWNER_ONLY
from server_capacity.aiperf import installation as aiperf
from server_capacity.aiperf.arguments import flags, problems_of, problems_of_names, strange, words
from server_capacity.aiperf.baseline import PAUSE_S, wait_for_baseline
from server_capacity.aiperf.export import AiperfResult, read_export
from server_capacity.aiperf.inputs import first_input, streams_differ
from server_capacity.aiperf.options import API_KEY, AiperfOptions
from server_capacity.aiperf.tokenizer import ADVICE, Tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from inference_benchmarker.facts.server_metric import Source
    from inference_benchmarker.wave.run_dir import RunDir
    from inference_benchmarker.wave.wave import Wave

MOST_INPUTS = 10_000
"""Requests that are made ready for aiperf; a longer run sends them again."""

KEY = "api-key"
_TELL_AFTER_S = 2.0
_INPUTS = "inputs.json"
_STREAMS_DIFFER = (
    "some payloads ask for a stream and others do not; aiperf takes all answers alike, and its TTFT would be wrong."
)
_TAKE_THEM_ALIKE = (
    "Name a factories file for each kind, or say how to take them: --aiperf-args '{\"streaming\": false}' (no TTFT)."
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a run with aiperf: its exit code, and what aiperf measured, or why there is nothing."""

    exit_code: int
    result: AiperfResult | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class AiperfStage:
    """One run of aiperf, ready to begin. ``body``: the first of the requests in ``inputs``, where they are ours."""

    options: AiperfOptions
    plan: WavePlan
    url: str
    inputs: Path | None
    body: dict[str, Any] | None
    environment: Mapping[str, str]
    say: Callable[[str], None]

    def follow(self, wave: Wave | None, sources: Sequence[Source]) -> Outcome:
        """Rest after the wave, where there is one, run aiperf and say how the whole ended."""
        before = OK if wave is None else wave.verdict.exit_code
        if before == INTERRUPTED:
            return Outcome(before)
        run_dir = make_run_dir(self.plan, facts_of(self.plan)) if wave is None or wave.run_dir is None else wave.run_dir
        try:
            if wave is not None:
                self._rest(sources, wave)
            result = self._run(run_dir, sources)
        except KeyboardInterrupt:
            return Outcome(INTERRUPTED, problem="Interrupted: aiperf measured nothing.")
        except OSError as error:
            return Outcome(worst_exit_code(before, INVALID), problem=f"aiperf's run was lost: {error}.")
        except aiperf.AiperfFailedError as error:
            return Outcome(worst_exit_code(before, INVALID), problem=str(error))
        return Outcome(worst_exit_code(before, result.exit_code), result)

    def _rest(self, sources: Sequence[Source], wave: Wave) -> None:
        """Wait until the server has forgotten the wave."""
        if self.options.pause_s is None and sources:
            wait_for_baseline(sources, wave.interval(), wave.server_metrics or (), self.say)
            return
        pause_s = PAUSE_S if self.options.pause_s is None else self.options.pause_s
        self.say(f"Pausing for {pause_s:g} s before aiperf.")
        time.sleep(pause_s)

    def _run(self, run_dir: RunDir, sources: Sequence[Source]) -> AiperfResult:
        """Run it and store what it measured; KeyboardInterrupt where it was interrupted before the first answer."""
        folder = run_dir.aiperf
        folder.mkdir(mode=OWNER_ONLY)
        for source in sources:
            source.begin()
        known = self._secrets()
        environment = {name: value for name, value in self.environment.items() if name != API_KEY}
        arguments = self._arguments(folder.resolve())
        interrupted = aiperf.run(self.options.installation, arguments, folder, environment, self.say, secrets=known)
        aiperf.scrub(folder, known)
        export = read_export(folder, self.plan.success_threshold, interrupted=interrupted)
        if export is None:
            if interrupted:
                raise KeyboardInterrupt
            raise aiperf.failure(folder, known)
        result, interval = export
        self._store(result)  # the server's metrics may be long in coming
        if sources and not interrupted:
            with counting_interrupts():  # what came is stored, whatever is pressed meanwhile
                rows = [until_interrupted(partial(collected, source, interval, self.say)) for source in sources]
                result = result.with_server_metrics(list(chain.from_iterable(rows)))
                self._store(result)
        return result

    def _store(self, result: AiperfResult) -> None:
        try:
            result.save()
        except OSError as error:
            reason = error.strerror or str(error)
            self.say(f"aiperf's result could not be stored ({reason}); what is printed is all there is of it.")

    def _secrets(self) -> list[str]:
        """The values that must be in no file, longest first so that no part of one is left."""
        keys = (str(key) for key in (self.environment.get(API_KEY), self.options.given.get(KEY)) if key)
        return sorted({*filter(_is_secret, keys), *secret_values(self.environment)}, key=len, reverse=True)

    def _arguments(self, folder: Path) -> list[str]:
        inputs = None
        if self.inputs is not None:
            inputs = folder / _INPUTS
            shutil.copyfile(self.inputs, inputs)
        found = flags(self.plan, self.url, self.options.given, inputs, self.body)
        key = self.environment.get(API_KEY)
        own = {"artifact-dir": str(folder)} | ({KEY: key} if key else {})
        return ["profile", *words({**own, **found})]


def _is_secret(key: str) -> bool:
    """A shorter key is a placeholder, and would be taken out of every word that it is part of."""
    return len(key) >= 4


@contextmanager
def prepared(
    options: AiperfOptions, plan: WavePlan, url: str, environment: Mapping[str, str], say: Callable[[str], None]
) -> Iterator[AiperfStage]:
    """The stage, with its requests made; BenchmarkError for what is wrong with them or missing."""
    plan = plan if plan.seed is not None else plan.with_seed(secrets.randbits(32))
    with scratch_folder("benchmark_aiperf_") as folder:
        inputs = None if options.brings_input else folder / _INPUTS
        body = None
        if inputs is not None:
            _make_inputs(plan, inputs, environment, say)
            body = first_input(inputs)
            if "streaming" not in options.given and streams_differ(inputs):
                raise BenchmarkError(_STREAMS_DIFFER, _TAKE_THEM_ALIKE)
        refuse([*_misspelt(options, environment, say), *problems_of(options.given, body)])
        tokenizer = Tokenizer.of(flags(plan, url, options.given, inputs, body))
        if tokenizer and (problem := tokenizer.problem(options.installation.python, environment, say)):
            raise BenchmarkError(problem, ADVICE)
        yield AiperfStage(options, plan, url, inputs, body, environment, say)


def _misspelt(options: AiperfOptions, environment: Mapping[str, str], say: Callable[[str], None]) -> Iterator[str]:
    """Flags that aiperf does not have; it is asked only where some may not be there."""
    if names := strange(options.given):
        say("Asking aiperf which flags it has ...")
        yield from problems_of_names(names, aiperf.known_flags(options.installation, environment))


def planned_inputs(plan: WavePlan) -> int:
    """The number of requests made ready: as many as are planned, where that is known, and not too many."""
    counts = [MOST_INPUTS]
    if plan.bounds.num_requests is not None:
        counts.append(plan.bounds.num_requests)
    if plan.bounds.duration_s is not None and isinstance(plan.load, OpenLoop):
        counts.append(max(1, math.ceil(plan.bounds.duration_s * plan.load.rate)))
    return min(counts)


def _make_inputs(plan: WavePlan, path: Path, environment: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Have a process of its own import the factories file and write what the arrivals send."""
    if plan.factories_file is None:
        raise BenchmarkError(
            "aiperf has no requests.",
            'Give --factories-file FILE, or --aiperf-args \'{"input-file": "FILE"}\'.',
        )
    asked = {
        "factories_file": str(plan.factories_file.resolve()),
        "endpoint_name": plan.endpoint_name,
        "seed": plan.seed,
        "arrivals": planned_inputs(plan),
        "path": str(path),
        "parent": os.getpid(),
    }
    log, mark, hidden = path.with_suffix(".log"), new_mark(), secret_values(environment)
    with (
        child_log(log, lambda text: redact(text, hidden)) as output,
        subprocess.Popen(
            [sys.executable, "-P", "-m", "server_capacity.aiperf.inputs"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            env={**child_environment(), MARK: mark},
            start_new_session=True,
        ) as process,
    ):
        try:
            answer = _communicate(process, json.dumps(asked) + "\n", plan, say)
        finally:
            process.kill()
            process.wait()
            end_leftovers(mark, {process.pid})
    if not answer:
        tail = log.read_text(encoding="utf-8", errors="replace")[-2000:]
        raise BenchmarkError(f"{plan.factories_file}: making aiperf's requests ended early.\n{tail}")
    if problem := json.loads(answer).get("problem"):
        raise BenchmarkError(problem)


def _communicate(process: subprocess.Popen[bytes], line: str, plan: WavePlan, say: Callable[[str], None]) -> bytes:
    try:
        return process.communicate(line.encode(), timeout=_TELL_AFTER_S)[0]
    except subprocess.TimeoutExpired:
        say("Making the requests for aiperf ...")
    try:
        return process.communicate(timeout=float(plan.load_timeout_s))[0]
    except subprocess.TimeoutExpired:
        raise BenchmarkError(
            f"{plan.factories_file}: aiperf's requests were not made within {plan.load_timeout_s} s.",
            "Make it quicker, or give it more time with --load-timeout.",
        ) from None
