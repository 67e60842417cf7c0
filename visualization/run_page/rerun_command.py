"""The command line that sends a wave's load again, as far as flags say all of its plan. Pure."""

from __future__ import annotations

import shlex
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING

from inference_benchmarker.plan.load import ClosedLoop, OpenLoop
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.words.redact import HIDDEN, redact

if TYPE_CHECKING:
    from collections.abc import Iterator

_FLAGS = {
    "factories_file": "--factories-file",
    "locust_file": "--locust-file",
    "endpoint_name": "--endpoint-name",
    "url": "--url",
    "workers": "--workers",
    "seed": "--seed",
    "warmup_s": "--warmup",
    "drain_timeout_s": "--drain-timeout",
    "request_timeout_s": "--request-timeout",
    "load_timeout_s": "--load-timeout",
    "max_answer_size": "--max-answer-size",
    "max_in_flight": "--max-in-flight",
    "success_threshold": "--success-threshold",
    "records": "--records",
    "name": "--name",
}
_IN_WORDS = (
    "load",
    "bounds",
    "slos",
    "goodput",
    "expect",
    "model_mix",
    "abort_on",
    "abort",
    "sample_client_hw",
    "factory_settings",
)
_OF_THE_RUN_ALONE = ("output_dir", "port", "ui", "debug")
_DEFAULTS = {
    each.name: each.default if each.default_factory is MISSING else each.default_factory() for each in fields(WavePlan)
}


def command(plan: WavePlan) -> str | None:
    """One line for a shell; None where a flag for something of the plan is missing here."""
    arguments = [*_load(plan), *_rest(plan)]
    if not _is_expressible(plan) or any(HIDDEN in redact(each) for each in arguments):  # a secret is in no command
        return None
    return shlex.join(["benchmark", *arguments])


def _is_expressible(plan: WavePlan) -> bool:
    """Tells whether the plan has nothing but what the flags here say."""
    load = plan.load
    own = load.replay if isinstance(load, OpenLoop) else load.populations
    plain_load = not (load.steered or own)
    others = _DEFAULTS.keys() - {*_FLAGS, *_IN_WORDS, *_OF_THE_RUN_ALONE}
    return plain_load and all(getattr(plan, name) == _DEFAULTS[name] for name in others)


def _load(plan: WavePlan) -> Iterator[str]:
    load, bounds = plan.load, plan.bounds
    if isinstance(load, ClosedLoop):
        yield from ("--concurrency", str(load.concurrency))
    elif load.stages:
        yield from ("--stages", ", ".join(stage.text for stage in load.stages))
    else:
        yield from ("--client-rps", f"{load.rate.normalize():f}")
    if isinstance(load, OpenLoop) and load.arrivals != "constant":
        yield from ("--arrivals", load.arrivals)
    if load.think is not None:
        yield from ("--think-time", load.think.text)
    if bounds.duration_s is not None and bounds.duration_s != load.length_s:
        yield from ("--obs-time", f"{bounds.duration_s:f}")
    if bounds.num_requests is not None:
        yield from ("--num-requests", str(bounds.num_requests))


def _rest(plan: WavePlan) -> Iterator[str]:
    for name, flag in _FLAGS.items():
        value = getattr(plan, name)
        if value is not None and value != _DEFAULTS[name]:
            yield from (flag, str(value))
    for name, value in plan.factory_settings.items():
        yield from ("--set", f"{name}={value}")
    for expected in plan.expect:
        yield from ("--expect", expected.text)
    if plan.model_mix is not None:
        yield from ("--model-mix", plan.model_mix.text)
    yield from _limits(plan)
    if plan.sample_client_hw:
        yield "--sample-client-hw"


def _limits(plan: WavePlan) -> Iterator[str]:
    for slo in plan.slos:
        yield from ("--slo", slo.expression)
    if plan.goodput:
        yield from ("--goodput", ",".join(limit.expression for limit in plan.goodput))
    for condition in plan.abort_on:
        yield from ("--abort-on", condition.text)
    if not plan.abort:
        yield "--no-abort"
