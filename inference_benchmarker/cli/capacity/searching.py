"""A search as the command line runs it: of an endpoint that is there, or of one that is made for it."""

from __future__ import annotations

import os
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from inference_benchmarker.cli.core.terminal import for_now, print_report, say, say_nothing, search_view
from inference_benchmarker.cli.wave.exporting import Export
from inference_benchmarker.cli.wave.server_metrics import blocks_of, say_warnings
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.system.files import kind_of
from inference_benchmarker.words.redact import redact
from inference_benchmarker.words.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from inference_benchmarker.engine.progress_listener import Live
    from inference_benchmarker.plan.plan import WavePlan
    from server_capacity.experiments.capacity.pilot import CapacityPilot
    from server_capacity.experiments.capacity.waves import Waves
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.experiments.server_side.server_side import ServerSide
    from server_capacity.metrics.config import MetricsBlock
    from server_capacity.provisioning.scaling import Suspension
    from server_capacity.results.types.bounds import CleanUp
    from server_capacity.results.types.capacity import CanaryAnswer, CapacityResult

    Tell = Callable[[str], None]


@contextmanager
def removed_if_empty(folder: Path) -> Iterator[None]:
    """Leave no folder of a search that could not begin."""
    try:
        yield
    except (BenchmarkError, KeyboardInterrupt):
        with suppress(OSError):
            folder.rmdir()
        raise


@contextmanager
def served(
    question: Question, arguments: Mapping[str, Any] | None, known: Mapping[str, Any], folder: Path, tell: Tell
) -> Iterator[Question]:
    """The question about an endpoint that endpoint_factory makes for it; without ``arguments`` the question as it is.

    ``known``: the arguments as far as they are known, with defaults. The endpoint has answered a request by then.
    """
    if arguments is None:
        yield question
        return
    from server_capacity.provisioning.handle import Keeper
    from server_capacity.results.types.bounds import Endpoint

    file, settings = question.plan.factories_file, question.plan.factory_settings
    assert file is not None
    with (
        Keeper(folder, tell, say) as keeper,
        keeper.endpoint(file, arguments, folder.name, settings) as made,
    ):
        plan = replace(question.plan, endpoint_name=made.name)
        check_one(plan)
        tell(f"{made.name} came into service after {made.seconds:.0f} s and answered a request.")
        endpoint = Endpoint(arguments=dict(known), seconds_to_create=made.seconds)
        yield replace(question, plan=plan, endpoint=endpoint, lost=made.lost)


def check_one(plan: WavePlan) -> None:
    """Send one request; BenchmarkError with what became of it where it failed."""
    from inference_benchmarker.engine.check import send_one
    from inference_benchmarker.report.check import Check

    printed: list[str] = []
    found = send_one(plan, printed.append)
    if not found.ok:
        reason = getattr(found, "how", None) or getattr(found, "error_text", None) or "it failed"
        if isinstance(found, Check) and found.record.error == "RequestTimeout":
            reason = f"no answer within {plan.request_timeout_s} s"
        name = redact(plan.endpoint or str(plan.factories_file or plan.locust_file))
        text = one_line(redact(str(reason)), 500).rstrip(".")
        raise BenchmarkError(f"{name}: the first request to it failed: {text}.")


def asked_canaries(plan: WavePlan, tell: Tell) -> tuple[CanaryAnswer, ...] | None:
    """The answers to the canaries of a plan's file; None where it has none, or they cannot be asked."""
    from inference_benchmarker.engine.check import ask_canaries
    from inference_benchmarker.engine.endpoint.source import has_canaries
    from server_capacity.results.types.capacity import CanaryAnswer

    if plan.factories_file is None or not has_canaries(plan.factories_file):
        return None
    try:
        found = ask_canaries(plan, say_nothing)
    except BenchmarkError as error:
        tell(f"The answers of the variants are not compared by text: {error}")
        return None
    if found.failed:
        tell(f"A canary failed before the search: {found.failed}")
    return tuple(CanaryAnswer(**answer) for answer in found.answers)


def search(
    question: Question, options: dict[str, Any], folder: Path, tell: Tell, export: Export | None = None
) -> CapacityResult:
    """Search, and give what stands in the folder's ``capacity.json``."""
    from server_capacity.experiments.capacity.run import find_capacity
    from server_capacity.results.capacity_folder import save
    from server_capacity.results.types.result_status import settled

    with standing(question, options, folder, tell, export) as (asked, waves, suspension):
        found = find_capacity(asked, waves)
    if suspension is None:
        return found
    return save(folder, settled(replace(found, suspended=suspension.to_result())))


class Cleaned(NamedTuple):
    """The end of all that a command made or changed: ``state`` is None where that was nothing.

    ``troubles``: clauses on each endpoint_factory that did not remove its endpoint.
    """

    state: CleanUp | None = None
    troubles: tuple[str, ...] = ()

    def added_to(self, found: CapacityResult) -> CapacityResult:
        """The answer with it; as it is where there was nothing."""
        if self.state is None:
            return found
        warnings = [*(found.warnings or []), *self.troubles] if self.troubles else found.warnings
        return replace(found, clean_up=self.state, warnings=warnings)


def tidied(folder: Path, found: CapacityResult, clean_up: Cleaned) -> CapacityResult:
    """The answer with what became of what was made for it: what is left behind makes its exit code a failure's."""
    from server_capacity.results.capacity_folder import save
    from server_capacity.results.types.result_status import settled

    if clean_up.state is None:
        return found
    return save(folder, settled(clean_up.added_to(found)))


def cleaned(folder: Path) -> Cleaned:
    """``done`` or ``failed``, of what the folder's command made or changed."""
    from server_capacity.provisioning.cleanup_file import NAME, left_in, read, unknown_in

    if kind_of(folder / NAME) != "file":
        return Cleaned()
    try:
        entries = read(folder)
    except BenchmarkError:  # who cannot read it does not know
        return Cleaned("failed")
    troubles = tuple(entry.reason for entry in entries if entry.reason and entry.state != "held")
    return Cleaned("failed" if left_in(entries) or unknown_in(entries) else "done", troubles)


@contextmanager
def standing(
    question: Question, options: dict[str, Any], folder: Path, tell: Tell, export: Export | None = None
) -> Iterator[tuple[Question, Waves, Suspension | None]]:
    """The question with what is known of its endpoint, and whoever runs the waves, while nobody scales the endpoint.

    Of one that was there scaling was refused before, of one that is made it is now. Last, what was suspended, complete
    once the context has ended; None where nothing was to be.
    """
    from server_capacity.experiments.server_side.measured_endpoint import measured_endpoint
    from server_capacity.provisioning.scaling import suspended_scaling

    made, suspends = question.endpoint, options["suspend_scaling"]
    if made:
        refuse_scaling(question, options)
    blocks = _blocks(question, options)
    server = _server(blocks, question, options, tell)
    known = measured_endpoint(
        question.plan.endpoint_name,
        None if made is None else made.arguments,
        question.plan.payload_arguments,
        None if made is None else made.seconds_to_create,
        blocks,
    )
    question = replace(question, endpoint=known)
    with suspended_scaling(blocks, folder, say) if suspends else nullcontext() as suspended:
        handed_on = (export or Export()).named(question.plan.name or folder.name)
        yield question, _waves(options, folder, server, tell, handed_on), suspended


def refuse_scaling(question: Question, options: dict[str, Any]) -> None:
    """BenchmarkError where somebody scales the endpoint, and that is not to be suspended."""
    from server_capacity.provisioning.scaling import active_scaling

    if not options["suspend_scaling"]:
        refuse(active_scaling(_blocks(question, options), say, made=bool(question.endpoint)))


def _blocks(question: Question, options: dict[str, Any]) -> list[MetricsBlock]:
    blocks = blocks_of(options["endpoint_config"], question.plan.server_limits, options["metrics_wait"])
    name = question.plan.endpoint_name or ""
    return [block.of_endpoint(name) for block in blocks] if question.endpoint else blocks  # no file can know its name


def _server(blocks: list[MetricsBlock], question: Question, options: dict[str, Any], tell: Tell) -> ServerSide:
    """Whoever is asked about the server; what will probably bring nothing is said now."""
    from server_capacity.experiments.server_side.server_side import ServerSide

    server = ServerSide(blocks, os.environ, question.plan.server_limits, for_now(tell))
    if not options["quiet"]:
        say_warnings(options["endpoint_config"], server.sources, None)
    return server


def _waves(options: dict[str, Any], folder: Path, server: ServerSide, tell: Tell, export: Export) -> Waves:
    """Whoever runs the waves, with a view of each."""
    from server_capacity.experiments.capacity.waves import Waves

    def live(plan: WavePlan, pilot: CapacityPilot | None) -> Live:
        text = None if pilot is None else pilot.progress
        return export.follow(plan, search_view(plan, text, quiet=options["quiet"]))

    return Waves(
        folder,
        say=tell,
        live=live,
        finished=export.finish,
        server=server,
        announce=say_nothing if options["json"] else lambda line: print_report(f"{line}\n\n"),
    )
