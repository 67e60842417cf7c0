"""The ranking of what processes have reported so far, from the folders of their searches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.exit_codes import INVALID
from server_capacity.experiments.ranking.preflight import needed_by, with_text
from server_capacity.metrics.aws_answers import region_of
from server_capacity.planning.costs.quota import quota
from server_capacity.results.capacity_folder import load
from server_capacity.results.ranking_order import ranking
from server_capacity.results.ranking_row import failed_row, is_ranked, row_of
from server_capacity.results.types.bounds import Endpoint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from server_capacity.experiments.ranking.children import Result
    from server_capacity.experiments.ranking.jobs import Job
    from server_capacity.planning.costs.prices import Prices
    from server_capacity.results.ranking_row import Aim
    from server_capacity.results.types.bounds import StatedQuota
    from server_capacity.results.types.ranking import RankedRow, RankingResult

INTERRUPTED = "interrupted"
LOST = "The process that ran the search was interrupted by another program."


@dataclass(frozen=True, slots=True)
class Collector:
    """``folder``: of the ranking, in which those of the searches are."""

    folder: Path
    jobs: Sequence[Job]
    aim: Aim
    prices: Prices

    def ranking(self, results: Mapping[tuple[int, int], Result], *, interrupted: bool, created: str) -> RankingResult:
        """The ranking. ``results``: by a job's place and a variant's in it; others were not reached."""
        rows = [
            self._row(job, place, results.get((number, place)), interrupted=interrupted)
            for number, job in enumerate(self.jobs)
            for place in range(len(job.variants))
        ]
        return ranking(rows, self.aim, interrupted=interrupted, created=created)

    def _row(self, job: Job, place: int, result: Result | None, *, interrupted: bool) -> RankedRow:
        variant = job.variants[place].to_json()
        if result is None or (interrupted and (result.folder, result.failed) == (None, None)):
            return failed_row(variant, "The command ended before it was measured.", INTERRUPTED)
        if result.folder is None:
            return failed_row(variant, result.failed or LOST, code=result.code)
        try:
            found = load(self.folder / result.folder).found
        except BenchmarkError as error:
            return failed_row(variant, str(error), folder=result.folder, code=INVALID)
        endpoint = found.endpoint or Endpoint()
        kind = endpoint.instance_type or needed_by(job.known).instance_type
        price = None if kind is None else self.prices.of(kind, endpoint.region or region_of(None))
        row = row_of(variant, result.folder, found, price, self.aim)
        if row.outcome == INTERRUPTED and not interrupted and not is_ranked(row):
            return failed_row(variant, LOST, folder=result.folder, code=INVALID)
        return row


def quotas_of_target(found: RankingResult) -> list[StatedQuota]:
    """The quotas of the instances that the best variants need for the target, where AWS reports them."""
    quotas = []
    for row in found.rows:
        endpoint = row.endpoint or Endpoint()
        if row.rank == 1 and endpoint.instance_type is not None and row.instances_for_target is not None:
            found_quota = quota(endpoint.instance_type, endpoint.region, row.instances_for_target)
            quotas += [] if found_quota is None else [with_text(found_quota)]
    return quotas
