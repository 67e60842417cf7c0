"""`benchmark capacity --over`: searches at a few lengths, and the capacity between them where a fit is believed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from inference_benchmarker.cli.capacity.searching import cleaned, refuse_scaling, removed_if_empty, served, standing
from inference_benchmarker.cli.core.pages import draw_capacity, draw_surface
from inference_benchmarker.cli.core.terminal import print_json, print_report
from inference_benchmarker.cli.core.unstored import code_of, stored
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.exit_codes import INTERRUPTED, worst_exit_code
from inference_benchmarker.words.wording import length_text, pluralize

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inference_benchmarker.cli.wave.exporting import Export
    from inference_benchmarker.embedded.llm.streams import Streams
    from server_capacity.experiments.capacity.surface import Point, PointFound
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.experiments.ranking.jobs import Job
    from server_capacity.models.surface.lengths import Over
    from server_capacity.results.types.surface import SearchedPoint, SurfaceResult

    Tell = Callable[[str], None]

_SIMULATED_S = 4.0
"""Of a point of the grid, about."""


class Asked(NamedTuple):
    """The lengths over which a search goes, and the search."""

    over: Over
    question: Question


def search_surface(asked: Asked, job: Job, options: dict[str, Any], tell: Tell, export: Export) -> int:
    """Search, fit, compare, print what was found, and give the exit code: the gravest of the searches."""
    from server_capacity.experiments.capacity.run import make_folder
    from server_capacity.experiments.capacity.surface import find_points, sent_alone
    from server_capacity.results.surface_folder import KIND

    over, question = asked
    if job.arguments is None:
        refuse_scaling(question, options)
    points, folder = _points(over, question), make_folder(question, KIND)
    tell(_forecast(over, points))
    surface = _Surface(folder, question, points, options["name"])
    with (
        removed_if_empty(folder),
        served(question, job.arguments, job.known, folder, tell) as made,
        standing(made, options, folder, tell, export) as (stood, waves, suspension),
    ):
        there = [replace(point, question=_at_endpoint(point.question, stood)) for point in points]
        alone = sent_alone([point for point in there if point.use == "fit"], waves)
        for found in find_points(there, waves):
            surface.add(found)
            tell(f"{found.point.lengths.text}: {found.found.headline}")
    surface.note_clean_up(None if suspension is None else suspension.to_result())
    return _reported(surface.concluded(over, alone, tell), surface, options, tell)


def _points(over: Over, question: Question) -> list[Point]:
    from server_capacity.experiments.capacity.surface import Point, at_lengths

    fitted = [Point(each, "fit", at_lengths(question, each)) for each in over.fitted]
    return [*fitted, *(Point(each, "held_out", at_lengths(question, each)) for each in over.held_out)]


def _forecast(over: Over, points: list[Point]) -> str:
    searches = pluralize(len(points), "search", "searches")
    load_s = sum(point.question.longest_s for point in points)
    return (
        f"{searches} ({len(over.fitted)} for the fit, {len(over.held_out)} held out), about {length_text(load_s)} of "
        f"load in all; then {len(over.grid)} points are simulated, which takes this machine about "
        f"{length_text(_SIMULATED_S * len(over.grid))}."
    )


def _at_endpoint(question: Question, stood: Question) -> Question:
    plan = replace(question.plan, endpoint_name=stood.plan.endpoint_name)
    return replace(question, plan=plan, endpoint=stood.endpoint, lost=stood.lost)


class _Surface:
    """The searches so far, which are stored after each."""

    def __init__(self, folder: Path, question: Question, points: list[Point], name: str | None) -> None:
        self.folder, self._points, self._limits = folder, points, question.limits
        self.found: list[PointFound] = []
        self._name, self._created = name, f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"

    def add(self, found: PointFound) -> None:
        """Another search; what it is if this command is killed now."""
        from server_capacity.results.surface_folder import save

        self.found.append(found)
        try:
            save(self.folder, self.so_far())
        except BenchmarkError:  # the last attempt says so
            return

    def note_clean_up(self, suspended: Any) -> None:
        """Each search with what became of what was made or changed for all of them."""
        from server_capacity.results.capacity_folder import save
        from server_capacity.results.types.result_status import settled

        clean_up = cleaned(self.folder)
        for place, each in enumerate(self.found) if suspended or clean_up.state else ():
            found = clean_up.added_to(replace(each.found, suspended=suspended or each.found.suspended))
            self.found[place] = each._replace(found=save(each.folder, settled(found)))

    def so_far(self) -> SurfaceResult:
        """The searches, without a surface."""
        from inference_benchmarker.version import SCHEMA_VERSION
        from server_capacity.results.types.surface import SurfaceResult

        rows = [self._row(point) for point in self._points]
        return SurfaceResult(
            schema_version=SCHEMA_VERSION,
            created=self._created,
            name=self._name,
            limits=[limit.expression for limit in self._limits],
            stage="searching",
            exit_code=worst_exit_code(*(row.exit_code for row in rows)),
            searches=rows,
        )

    def _row(self, point: Point) -> SearchedPoint:
        from server_capacity.results.surface_checks import searched_point
        from server_capacity.results.types.result_status import FAILED
        from server_capacity.results.types.surface import SearchedPoint

        prompt, answer = point.lengths
        found = next((each for each in self.found if each.point.lengths == point.lengths), None)
        if found is not None:
            return searched_point(prompt, answer, point.use, found.folder.name, found.found)
        return SearchedPoint(
            input_tokens=prompt,
            output_tokens=answer,
            use=point.use,
            outcome=FAILED,
            headline="Not searched: the command was interrupted before",
            exit_code=INTERRUPTED,
        )

    def concluded(self, over: Over, alone: dict[int, Streams], tell: Tell) -> SurfaceResult:
        """The surface where every search has ended, or why there is none."""
        from inference_benchmarker.embedded.llm.fit import fit
        from server_capacity.models.surface.judging import judged
        from server_capacity.models.surface.predicting import Model

        found = self.so_far()
        if len(self.found) < len(self._points) or found.exit_code == INTERRUPTED:
            return found
        try:
            fitted = fit(self._streams(alone))
        except BenchmarkError as error:
            return replace(found, stage="refused", refused=str(error))
        prompts = {asked: float(streams.prompt.mean()) for asked, streams in alone.items()}
        return judged(found, Model(fitted, self._limits, prompts), over, tell)

    def _streams(self, alone: dict[int, Streams]) -> Streams:
        from inference_benchmarker.embedded.llm.streams import one_after_another

        parts = list(alone.values())
        for each in self.found:
            if isinstance(each.streams, BenchmarkError):
                raise each.streams
            parts += [each.streams] if each.streams is not None else []
        return one_after_another(parts)


def _reported(found: SurfaceResult, surface: _Surface, options: dict[str, Any], tell: Tell) -> int:
    from server_capacity.results.surface_folder import save, with_headline
    from server_capacity.results.text.surface import to_text

    folder, whole = surface.folder, with_headline(found)
    found, unsaved = stored(lambda: save(folder, whole), whole)
    if options["json"]:
        print_json(found)
    else:
        print_report(to_text(found, str(folder)))
    if not unsaved:
        _draw(found, surface, tell)
    return code_of(found.exit_code, unsaved)


def _draw(found: SurfaceResult, surface: _Surface, tell: Tell) -> None:
    """Draw the page of each search and that of all."""
    for each in surface.found:
        draw_capacity(each.found, each.folder, tell)
    if page := draw_surface(found, surface.folder, tell):
        tell(f"Page: {page}")
