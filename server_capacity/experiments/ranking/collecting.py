"""The ranking of what processes have told so far, from the folders of their searches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.exit_codes import INVALID
from server_capacity.experiments.ranking.before import needed_by, with_text
from server_capacity.metrics.aws_answers import region_of
from server_capacity.planning.costs.quota import quota
from server_capacity.results.capacity_folder import load
from server_capacity.results.ranking_order import ranking
from server_capacity.results.ranking_row import failed_row, row_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from server_capacity.experiments.ranking.children import Result
    from server_capacity.experiments.ranking.jobs import Job
    from server_capacity.planning.costs.prices import Prices
    from server_capacity.results.ranking_row import Aim, Row

INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Collector:
    """``folder``: of the ranking, in which those of the searches are."""

    folder: Path
    jobs: Sequence[Job]
    aim: Aim
    prices: Prices

    def ranking(self, results: Mapping[tuple[int, int], Result], **more: Any) -> dict[str, Any]:
        """The object of ranking.json. ``results``: by a job's place and a variant's in it; others were not reached."""
        rows = [
            self._row(job, place, results.get((number, place)))
            for number, job in enumerate(self.jobs)
            for place in range(len(job.variants))
        ]
        return ranking(rows, self.aim, **more)

    def _row(self, job: Job, place: int, result: Result | None) -> Row:
        variant = job.variants[place].to_json()
        if result is None or (result.folder, result.failed) == (None, None):
            return failed_row(variant, "It was not measured before the end.", INTERRUPTED)
        if result.folder is None:
            return failed_row(variant, str(result.failed), code=result.code)
        try:
            data, _ = load(self.folder / result.folder)
        except BenchmarkError as error:
            return failed_row(variant, str(error), folder=result.folder, code=INVALID)
        endpoint = data.get("endpoint") or {}
        kind = endpoint.get("instance_type") or needed_by(job.known).instance_type
        price = None if kind is None else self.prices.of(kind, endpoint.get("region") or region_of(None))
        return row_of(variant, result.folder, data, price, self.aim)


def quotas_of_target(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The quotas of the instances that the best variants need for the target, where AWS tells them."""
    found = []
    for row in data["rows"]:
        kind = (row["endpoint"] or {}).get("instance_type") if row["rank"] == 1 else None
        if kind is not None and row["instances_for_target"] is not None:
            told = quota(kind, (row["endpoint"] or {}).get("region"), row["instances_for_target"])
            found += [] if told is None else [with_text(told)]
    return found
