"""aiperf as a stage of a run: its requests made before any load is sent, the rest before it, the run, its result."""

from __future__ import annotations

import secrets
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from inference_benchmarker.engine.launch import facts_of, make_run_dir
from inference_benchmarker.engine.processes.children import note_addresses, note_asked_for
from inference_benchmarker.engine.processes.interrupts import counting_interrupts, until_interrupted
from inference_benchmarker.engine.processes.scratch import scratch_folder
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.exit_codes import INTERRUPTED, INVALID, OK, worst_exit_code
from inference_benchmarker.facts.server_metric import collected
from inference_benchmarker.system.given import resolved
from inference_benchmarker.wave.run_dir import OWNER_ONLY
from inference_benchmarker.words.redact import ADDRESSES
from inference_benchmarker.words.secret_values import secrets_in_results
from server_capacity.aiperf import installation as aiperf
from server_capacity.aiperf.arguments import STREAM, flags, problems_of, problems_of_names, strange, words
from server_capacity.aiperf.baseline import PAUSE_S, wait_for_baseline
from server_capacity.aiperf.certificates import certificate_problems
from server_capacity.aiperf.export import AiperfResult, read_export
from server_capacity.aiperf.inputs import given_requests, streams_differ, write_inputs, written
from server_capacity.aiperf.making import make_requests
from server_capacity.aiperf.options import API_KEY, AiperfOptions
from server_capacity.aiperf.tokenizer import ADVICE, Tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from inference_benchmarker.facts.server_metric import Source
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.wave.run_dir import RunDir
    from inference_benchmarker.wave.wave import Wave
    from server_capacity.aiperf.arguments import Requests

KEY = "api-key"
INPUTS = "inputs.json"
_STREAMS_DIFFER = (
    "some payloads ask for a stream and others do not; aiperf treats all answers alike, and its TTFT would be wrong."
)
_WHOLE = (
    'aiperf measures whole answers, as the payload has no "stream": for TTFT add "stream": true to it, or give '
    "--aiperf-args '{\"streaming\": true}'."
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
    """One run of aiperf, ready to begin. ``requests``: None where only aiperf knows them."""

    options: AiperfOptions
    plan: WavePlan
    url: str
    requests: Requests | None
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
            result = self._run(run_dir, sources, streamed=self._streamed(wave))
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

    def _streamed(self, wave: Wave | None) -> bool:
        """Tells whether requests that do not say it are to ask for a stream: as the wave's client did, or as given."""
        if self.options.brings_input or self.requests is None or not self.requests.is_silent_on_streams:
            return False
        if "streaming" in self.options.given:
            return self.options.given["streaming"] is True
        if wave is None:
            self.say(_WHOLE)
            return False
        return had_streams(wave)

    def _run(self, run_dir: RunDir, sources: Sequence[Source], *, streamed: bool) -> AiperfResult:
        """Run it and store what it measured; KeyboardInterrupt where it was interrupted before the first answer."""
        folder = run_dir.aiperf
        folder.mkdir(mode=OWNER_ONLY)
        for source in sources:
            source.begin()
        known = self._secrets()
        environment = {name: value for name, value in self.environment.items() if name != API_KEY}
        arguments = self._arguments(resolved(folder), streamed=streamed)
        interrupted = aiperf.run(self.options.installation, arguments, folder, environment, self.say, secrets=known)
        aiperf.scrub(folder, known)
        export = read_export(folder, self.plan.success_threshold, interrupted=interrupted)
        if export is None:
            if interrupted:
                raise KeyboardInterrupt
            raise aiperf.failure(folder, known)
        result, interval = export
        self._store(run_dir, result)  # the server's metrics may be long in coming
        if sources and not interrupted:
            with counting_interrupts():  # what came is stored, whatever is pressed meanwhile
                rows = [until_interrupted(partial(collected, source, interval, self.say)) for source in sources]
                result = result.with_server_metrics(list(chain.from_iterable(rows)))
                self._store(run_dir, result)
        return result

    def _store(self, run_dir: RunDir, result: AiperfResult) -> None:
        from inference_benchmarker.wave.writer import add_digest

        try:
            result.save()
            add_digest(run_dir, run_dir.aiperf_summary)
        except OSError as error:
            reason = error.strerror or str(error)
            self.say(f"aiperf's result could not be stored ({reason}); the results exist only in the printed text.")

    def _secrets(self) -> list[str]:
        """The values that must be in no file, longest first so that no part of one is left.

        A password that is a number may be a part of a result: it is hidden in its address.
        """
        keys = (str(key) for key in (self.environment.get(API_KEY), self.options.given.get(KEY)) if key)
        addresses = self.environment.get(ADDRESSES, "").split()
        found = {*filter(_is_secret, keys), *secrets_in_results(self.environment), *addresses}
        return sorted(found, key=len, reverse=True)

    def _arguments(self, folder: Path, *, streamed: bool) -> list[str]:
        requests = self.requests
        if requests is not None and not self.options.brings_input:
            more, bodies = STREAM if streamed else {}, written(requests.path)
            requests = replace(requests, path=folder / INPUTS)
            write_inputs(requests.path, ({**more, **body} for body in bodies))
        found = flags(self.plan, self.url, self.options.given, requests, streamed=streamed)
        key = self.environment.get(API_KEY)
        own = {"artifact-dir": str(folder)} | ({KEY: key} if key else {})
        return ["profile", *words({**own, **found})]


def had_streams(wave: Wave) -> bool:
    """Tells whether its answers came in pieces."""
    if wave.counts is not None:
        return wave.counts.window.total("itl") > 0
    return any(
        (part.outcome("ok") & (part.int("chunks") > 1)).any() for part in wave.records.parts("outcome", "chunks")
    )


def _is_secret(key: str) -> bool:
    """A shorter key is a placeholder, and would be taken out of every word that it is part of."""
    return len(key) >= 4


@contextmanager
def prepared(
    options: AiperfOptions, plan: WavePlan, url: str, environment: Mapping[str, str], say: Callable[[str], None]
) -> Iterator[AiperfStage]:
    """The stage, with its requests made; BenchmarkError for what is wrong with them or missing."""
    plan = plan if plan.seed is not None else plan.with_seed(secrets.randbits(32))
    note_asked_for(plan.factories_file, plan.factory_settings.values())
    note_addresses(url, plan.endpoint_name, *plan.factory_settings.values(), *_given_addresses(options))
    refuse(certificate_problems(url, environment))
    with scratch_folder("benchmark_aiperf_") as folder:
        ours = not options.brings_input
        requests = make_requests(plan, folder / INPUTS, environment, say) if ours else _given(options)
        if requests is not None and "streaming" not in options.given and streams_differ(requests, ours=ours):
            raise BenchmarkError(_STREAMS_DIFFER, _TAKE_THEM_ALIKE)
        body = None if requests is None else requests.body
        refuse([*_misspelt(options, environment, say), *problems_of(options.given, body)])
        tokenizer = Tokenizer.of(flags(plan, url, options.given, requests))
        if tokenizer and (problem := tokenizer.problem(options.installation.python, environment, say)):
            raise BenchmarkError(problem, ADVICE)
        yield AiperfStage(options, plan, url, requests, environment, say)


def _given_addresses(options: AiperfOptions) -> Iterator[str]:
    """Those of its own flag, which goes before --url."""
    value = options.given.get("url", "")
    yield from map(str, value if isinstance(value, list) else [value])


def _given(options: AiperfOptions) -> Requests | None:
    """The requests of the user's own file; None where they are in another form, or said to be."""
    file, form = options.given.get("input-file"), options.given.get("custom-dataset-type")
    found = given_requests(Path(file)) if isinstance(file, str) else None
    return found if found is None or form in (None, found.form) else None


def _misspelt(options: AiperfOptions, environment: Mapping[str, str], say: Callable[[str], None]) -> Iterator[str]:
    """Flags that aiperf does not have; it is asked only where some may not be there."""
    if names := strange(options.given):
        say("Reading aiperf's flags ...")
        yield from problems_of_names(names, aiperf.known_flags(options.installation, environment))
