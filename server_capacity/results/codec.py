"""The codec of stored results: decodes each kind, and checks that its parts agree. Pure.

A function for each kind gives its type; ValueError, with a sentence, for a value out of its bounds or a contradiction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.decoded import decoded
from server_capacity.results.capacity_checks import capacity_problems
from server_capacity.results.plan_checks import plan_problems
from server_capacity.results.proof_checks import proof_problems
from server_capacity.results.ranking_checks import ranking_problems
from server_capacity.results.surface_checks import surface_problems
from server_capacity.results.tiers_checks import tiers_problems

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from server_capacity.results.types.capacity import CapacityResult
    from server_capacity.results.types.plan import PlanResult
    from server_capacity.results.types.proof import ProofResult
    from server_capacity.results.types.ranking import RankingResult
    from server_capacity.results.types.surface import SurfaceResult
    from server_capacity.results.types.tiers import TiersResult


def check_capacity(data: Mapping[str, Any]) -> CapacityResult:
    """The object of ``capacity.json``."""
    from server_capacity.results.types.capacity import CapacityResult

    found = decoded(data, CapacityResult)
    _require(capacity_problems(found))
    return found


def check_ranking(data: Mapping[str, Any]) -> RankingResult:
    """The object of ``ranking.json``."""
    from server_capacity.results.types.ranking import RankingResult

    found = decoded(data, RankingResult)
    _require(ranking_problems(found))
    return found


def check_tiers(data: Mapping[str, Any]) -> TiersResult:
    """The object of ``tiers.json``."""
    from server_capacity.results.types.tiers import TiersResult

    found = decoded(data, TiersResult)
    _require(tiers_problems(found))
    return found


def check_surface(data: Mapping[str, Any]) -> SurfaceResult:
    """The object of ``surface.json``."""
    from server_capacity.results.types.surface import SurfaceResult

    found = decoded(data, SurfaceResult)
    _require(surface_problems(found))
    return found


def check_plan(data: Mapping[str, Any]) -> PlanResult:
    """The object of ``fleet_plan.json``."""
    from server_capacity.results.types.plan import PlanResult

    found = decoded(data, PlanResult)
    _require(plan_problems(found))
    return found


def check_proof(data: Mapping[str, Any]) -> ProofResult:
    """The object of ``proof.json``."""
    from server_capacity.results.types.proof import ProofResult

    found = decoded(data, ProofResult)
    _require(proof_problems(found))
    return found


def _require(problems: Iterator[str]) -> None:
    problem = next(problems, None)
    if problem is not None:
        raise ValueError(problem)
