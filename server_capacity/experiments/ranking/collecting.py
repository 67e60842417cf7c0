"""The ranking of what processes have reported so far, from the folders of their searches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.exit_codes import INVALID
from server_capacity.experiments.ranking.preflight import needed_by, with_text
from server_capacity.metrics.aws_answers import region_of
from server_capacity.planning.costs.quota import quota
from server_capacity.results.capacity_folder import load
from server_capacity.results.equal_answers import Given, with_answers
from server_capacity.results.ranking_order import ranking
from server_capacity.results.ranking_row import failed_row, is_ranked, row_of
from server_capacity.results.types.axes import label_of, stored_variants
from server_capacity.results.types.bounds import Endpoint
from server_capacity.results.types.price import GPU

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from server_capacity.experiments.ranking.children import Result
    from server_capacity.experiments.ranking.jobs import Job
    from server_capacity.planning.costs.prices import Prices
    from server_capacity.results.ranking_row import Aim
    from server_capacity.results.types.bounds import StatedQuota
    from server_capacity.results.types.price import Price
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
        stored = iter(stored_variants([variant for job in self.jobs for variant in job.variants]))
        found = [
            self._row(job, place, next(stored), results.get((number, place)), interrupted=interrupted)
            for number, job in enumerate(self.jobs)
            for place in range(len(job.variants))
        ]
        rows = with_answers([row for row, _ in found], [given for _, given in found])
        return ranking(rows, self.aim, interrupted=interrupted, created=created)

    def _row(
        self, job: Job, place: int, variant: dict[str, str], result: Result | None, *, interrupted: bool
    ) -> tuple[RankedRow, Given]:
        if result is None or (interrupted and (result.folder, result.failed) == (None, None)):
            return failed_row(variant, "The command ended before it was measured.", INTERRUPTED), Given()
        if result.folder is None:
            return failed_row(variant, result.failed or LOST, code=result.code), Given()
        try:
            found = load(self.folder / result.folder).found
        except BenchmarkError as error:
            return failed_row(variant, str(error), folder=result.folder, code=INVALID), Given()
        price = self._price(job.variants[place].to_json(), job, found.endpoint or Endpoint())
        row = row_of(variant, result.folder, found, price, self.aim)
        if row.outcome == INTERRUPTED and not interrupted and not is_ranked(row):
            return failed_row(variant, LOST, folder=result.folder, code=INVALID), Given()
        lengths = None if found.tokens is None else found.tokens.per_request
        return row, Given(tuple(found.canaries or ()), lengths)

    def _price(self, variant: dict[str, str], job: Job, endpoint: Endpoint) -> Price | None:
        """The price that was given for the variant, else for its instance type, else for each of its GPUs."""
        label, kind = label_of(variant), endpoint.instance_type or needed_by(job.known).instance_type
        if label in self.prices.given_types:
            return self.prices.of(label, None)
        price = None if kind is None else self.prices.of(kind, endpoint.region or region_of(None))
        return price or self._of_gpus(job)

    def _of_gpus(self, job: Job) -> Price | None:
        """The price of as many GPUs as endpoint_factory's argument ``gpus`` says; of one where it has none."""
        price = self.prices.of(GPU, None) if GPU in self.prices.given_types else None
        number = job.known.get("gpus")
        if price is None or not isinstance(number, int) or number <= 1:
            return price
        return replace(price, instance_type=f"{number} x {GPU}", per_hour=number * price.per_hour)


def quotas_of_target(found: RankingResult) -> list[StatedQuota]:
    """The quotas of the instances that the best variants need for the target, where AWS reports them."""
    quotas = []
    for row in found.rows:
        endpoint = row.endpoint or Endpoint()
        if row.rank == 1 and endpoint.instance_type is not None and row.instances_for_target is not None:
            found_quota = quota(endpoint.instance_type, endpoint.region, row.instances_for_target)
            quotas += [] if found_quota is None else [with_text(found_quota)]
    return quotas
