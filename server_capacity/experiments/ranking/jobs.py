"""The endpoints to make, with the arguments of their factory, and the payload arguments of what is sent to each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.endpoint.source import source_problems
from inference_benchmarker.errors import BenchmarkError, refuse
from server_capacity.provisioning.arguments import factory_arguments, value_of
from server_capacity.results.types.axes import label_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from inference_benchmarker.plan.plan import WavePlan
    from server_capacity.provisioning.arguments import FactoryArguments, Signature
    from server_capacity.results.types.axes import Values, Variant

_PAYLOAD_FACTORY = "payload_factory"


@dataclass(frozen=True, slots=True)
class Job:
    """An endpoint and the variants that are measured on it.

    ``arguments``: those that endpoint_factory is called with; None where no endpoint is made. ``known``: the same with
    the defaults in its source. ``payloads``: what payload_factory is called with, of each variant.
    """

    variants: tuple[Variant, ...]
    arguments: dict[str, Any] | None
    known: dict[str, Any]
    payloads: tuple[dict[str, Any] | None, ...]

    @property
    def label(self) -> str:
        """The endpoint as it is called."""
        first = self.variants[0]
        return label_of({**dict(first.arguments), **dict(first.env)})


def jobs_of(plan: WavePlan, endpoints: Sequence[Sequence[Variant]], *, make: bool) -> list[Job]:
    """A job for each endpoint. ``make``: a file's endpoint_factory is run where no --endpoint-name is given.

    One BenchmarkError for all that does not fit the signatures of the file's factories.
    """
    if plan.factories_file is None:
        return [Job(tuple(variants), None, {}, (None,) * len(variants)) for variants in endpoints]
    found = factory_arguments(plan.factories_file)
    makes = make and found.endpoint is not None and plan.endpoint_name is None
    problems = source_problems(plan.factories_file, None)
    jobs = [_job(plan, variants, found, problems, makes=makes) for variants in endpoints]
    refuse(list(dict.fromkeys(problems)))
    return jobs


def _job(
    plan: WavePlan, variants: Sequence[Variant], found: FactoryArguments, problems: list[str], *, makes: bool
) -> Job:
    first, arguments, known = variants[0], None, {}
    if makes and found.endpoint is not None:
        arguments = _endpoint_arguments(first, found.endpoint, problems)
        known = {each.name: each.default for each in found.endpoint.parameters if each.default is not None} | arguments
    elif first.arguments or first.env:
        problems.append(_not_made(plan, [*first.arguments, *first.env]))
    payloads = tuple(_payload_arguments(each.payload, found.payload, problems) for each in variants)
    return Job(tuple(variants), arguments, known, payloads)


def _not_made(plan: WavePlan, values: Values | list[tuple[str, str]]) -> str:
    name = values[0][0]
    if plan.endpoint_name is not None:
        return f"--vary {name} makes endpoints, and --endpoint-name names an existing one: leave one of them out."
    return f"{plan.factories_file}: has no endpoint_factory, which --vary {name} needs."


def _endpoint_arguments(variant: Variant, signature: Signature, problems: list[str]) -> dict[str, Any]:
    arguments = {}
    for name, text in variant.arguments:
        try:
            arguments[name] = signature.value(name, text)
        except BenchmarkError as error:
            problems.append(f"--vary {name}: {error}")
    if _is_no_env(arguments.get("env"), signature):
        problems.append("--vary env: endpoint_factory's env is a dictionary: give --vary env.NAME=V,V.")
    if variant.env:
        if not signature.takes_any and all(each.name != "env" for each in signature.parameters):
            problems.append(f"--vary env.{variant.env[0][0]}: endpoint_factory takes no argument 'env'.")
        arguments["env"] = dict(variant.env)
    missing = [each.name for each in signature.parameters if each.required and each.name not in arguments]
    problems += [f"endpoint_factory needs {name}: give --vary {name}=VALUE." for name in missing]
    return arguments


def _is_no_env(value: Any, signature: Signature) -> bool:
    """Tells whether a value is none for a factory's ``env``, unless that is something of the factory's own."""
    found = next((each for each in signature.parameters if each.name == "env"), None)
    if value is None or isinstance(value, dict) or found is None or isinstance(found.default, str):
        return False
    return any(word in (found.annotation or "dict").lower() for word in ("dict", "mapping"))


def _payload_arguments(values: Values, signature: Signature | None, problems: list[str]) -> dict[str, Any] | None:
    arguments = {}
    for name, text in values:
        try:
            arguments[name] = (
                value_of(None, text) if signature is None else signature.value(name, text, _PAYLOAD_FACTORY)
            )
        except BenchmarkError as error:
            problems.append(f"--vary payload.{name}: {error}")
    return arguments or None


def to_child(
    job: Job, options: Mapping[str, Any], folder: str, *, cores: int, label: str, silent: bool, compared: bool
) -> dict[str, Any]:
    """The job as it is handed to its process. ``label``: what stands before its lines; ``silent``: it says none.

    ``compared``: there are other endpoints, whose answers are to be the same.
    """
    return {
        "options": dict(options),
        "folder": folder,
        "arguments": job.arguments,
        "known": job.known,
        "payloads": list(job.payloads),
        "names": [label_of(variant.to_json()) for variant in job.variants],
        "cores": cores,
        "label": label,
        "silent": silent,
        "compared": compared,
    }
