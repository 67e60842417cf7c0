"""The target of a worker: the user's file, loaded, and what is sent to it once, alone, before the load."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from inference_benchmarker.answer_size import take_at_most
from inference_benchmarker.engine.endpoint import factories_file
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.returned import read_whole
from inference_benchmarker.plan.endpoint_problems import session_problem
from inference_benchmarker.plan.expectation import canary_share
from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.plan.model_mix import with_model
from inference_benchmarker.records.error_key import error_key, error_text
from inference_benchmarker.words.redact import excerpt, own_secrets
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inference_benchmarker.engine.endpoint.expected import AnswerCheck
    from inference_benchmarker.engine.endpoint.factories_file import Endpoint
    from inference_benchmarker.engine.worker.canaries import Canaries
    from inference_benchmarker.plan.model_mix import ModelMix
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.wave.run_dir import RunDir

MAX_ERROR_LENGTH = 2_000
_SHOWN = 200  # characters of why a request that is sent alone fails


class Target:
    """The target of a worker: a loaded factories file or a Locust file's users, or why neither could be loaded."""

    def __init__(self, plan: WavePlan) -> None:
        self.endpoint: factories_file.Endpoint | None = None
        self._plan = plan
        self.users: list[Any] = []
        self.warmed: list[Any] = []
        self.error: dict[str, str] | None = None
        self.check: AnswerCheck | None = None
        take_at_most(plan.max_answer_size)
        try:
            self._load(plan)
        except BenchmarkError as error:
            self.error = self._described(error)

    def ask_canaries(self) -> list[str | None] | None:
        """The answers to the canaries, asked alone, before any load; None without any. An error is the target's."""
        if self.endpoint is None or not self.endpoint.canaries:
            return None
        from inference_benchmarker.engine.worker.canaries import ask_alone

        try:
            return ask_alone(self.endpoint.invoke, self.endpoint.canaries)
        except BenchmarkError as error:
            self.error = self._described(error)
            return None

    def warm(self) -> dict[str, float] | None:
        """Send what is to be in the server's cache, before any load; None where there is nothing. As with canaries."""
        if self.error is not None or self.endpoint is None or self.endpoint.warming is None:
            return None
        try:
            self.warmed = [*self.endpoint.warming()]
            if self._plan.model_mix is not None:
                self.warmed = [with_model(each, name) for each in self.warmed for name in self._plan.model_mix.names]
            return send_once(self.endpoint.invoke, self.warmed) if self.warmed else None
        except BenchmarkError as error:
            self.error = self._described(error)
            return None

    def canaries(self, answers: list[str | None] | None) -> Canaries | None:
        """The canaries with their answers; None without any."""
        if answers is None or self.endpoint is None:
            return None
        from inference_benchmarker.engine.worker.canaries import Canaries

        return Canaries(self.endpoint.canaries, answers, canary_share(self._plan.expect), self._plan.seed or 0)

    @staticmethod
    def _described(error: BenchmarkError) -> dict[str, str]:
        return error.to_json(partial(excerpt, limit=MAX_ERROR_LENGTH, also=own_secrets(with_numbers=True)))

    @property
    def payloads(self) -> dict[str, int | bool | None]:
        """The number of pre-computed payloads, whether arrivals take them in turn, not by weight, or are ``sessions``.

        The number is None where they are built for each request.
        """
        if self.endpoint is None or self.endpoint.payloads is None:
            sessions = self.endpoint is not None and self.endpoint.session is not None
            return {"payloads": None, "in_turn": False, "sessions": sessions}
        in_turn = self.endpoint.cumulative_weights is None
        return {"payloads": len(self.endpoint.payloads), "in_turn": in_turn, "sessions": False}

    def _load(self, plan: WavePlan) -> None:
        self.check = answer_check(plan)
        if plan.locust_file is None:
            assert plan.factories_file is not None
            loaded = factories_file.load(
                plan.factories_file,
                plan.endpoint_name,
                with_rows=_has_rows(plan),
                payload_arguments=plan.payload_arguments,
                settings=plan.factory_settings,
                canary_seed=(plan.seed or 0) if canary_share(plan.expect) else None,
            )
            canaries = loaded.canaries if plan.model_mix is None else of_models(loaded.canaries, plan.model_mix)
            self.endpoint = replace(loaded, first=plan.first_payload, canaries=canaries)
            if plan.conversations is not None and loaded.session is not None and not loaded.takes_row:
                raise BenchmarkError(
                    f"{plan.factories_file}: session takes no recorded conversation, and there is a file of them.",
                    "Write `def session(number, recorded):`, or leave --conversations out.",
                )
            if problem := session_problem(plan, has_sessions=loaded.session is not None):
                raise BenchmarkError(*problem)
            return
        from inference_benchmarker.engine.worker.locust_file import load_users

        self.users = load_users(plan.locust_file, plan.url)


def answer_check(plan: WavePlan) -> AnswerCheck | None:
    """The check of answers, where any are expected: only then its libraries are imported."""
    if not plan.expect:
        return None
    from inference_benchmarker.engine.endpoint.expected import AnswerCheck

    return AnswerCheck(plan.expect)


def of_models(canaries: tuple[Any, ...], mix: ModelMix) -> tuple[Any, ...]:
    """Canaries that ask the models of a mix in turn, alone and under load."""
    return tuple(with_model(payload, mix.names[n % len(mix.names)]) for n, payload in enumerate(canaries))


def row_of(plan: WavePlan, loaded: Endpoint | None, run_dir: RunDir) -> Callable[[int], dict[str, Any]] | None:
    """The function that gives the row of an arrival, where there are recorded ones and build or session takes one."""
    if loaded is None or not loaded.takes_row or not _has_rows(plan):
        return None
    from inference_benchmarker.recording.rows import RowFile

    return RowFile(run_dir.recorded_rows).row


def _has_rows(plan: WavePlan) -> bool:
    return plan.conversations is not None or (isinstance(plan.load, OpenLoop) and plan.load.replay is not None)


def send_once(invoke: Callable[[Any], Any], payloads: Sequence[Any]) -> dict[str, float]:
    """Send each, one after the other, and tell how many they were and how long it took, in seconds.

    Raises BenchmarkError for one that fails: the cache would be warm for some.
    """
    begun = monotonic_ns()
    for payload in payloads:
        try:
            read_whole(invoke(payload))
        except Exception as error:
            text = f"{error_key(error)}: {excerpt(error_text(error), _SHOWN)}"
            raise BenchmarkError(f"--cache warm: a request that was sent before the load failed: {text}") from error
    return {"requests": len(payloads), "seconds": (monotonic_ns() - begun) / NS}
