"""A plan from what is asked to what is written: searches read, endpoints planned one by one, files beside them."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from inference_benchmarker.data.json_file import UNREADABLE, foreign
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.exit_codes import MISSED, worst_exit_code
from inference_benchmarker.words.units import NS
from server_capacity.planning.case import Case
from server_capacity.planning.content import endpoint_plan
from server_capacity.planning.costs.quota import quota
from server_capacity.planning.demand import demand_of, recorded
from server_capacity.planning.folder import json_text, read_search
from server_capacity.planning.kubernetes import kubernetes_files, label
from server_capacity.planning.measured import COMPONENT, Refused
from server_capacity.planning.policies import name_of, policy_files
from server_capacity.planning.remarks import simulated_remarks
from server_capacity.planning.simulating import simulation
from server_capacity.planning.totals import content, load_text
from server_capacity.planning.users.making import make_users_plan
from server_capacity.results.capacity_folder import FILE as CAPACITY_FILE
from server_capacity.results.types.bounds import Endpoint
from server_capacity.results.types.price import cost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from inference_benchmarker.plan.replay import Replay
    from server_capacity.planning.costs.prices import Prices
    from server_capacity.planning.demand import Recorded
    from server_capacity.planning.measured import Measured
    from server_capacity.planning.request import PlanRequest
    from server_capacity.results.types.bounds import Cost, Quota
    from server_capacity.results.types.plan import EndpointPlan, PlanResult
    from server_capacity.results.types.price import Price


@dataclass(frozen=True, slots=True)
class MadePlan:
    """A plan, and the texts of the files beside it by their names."""

    found: PlanResult
    files: dict[str, str] = field(default_factory=dict)


def make_plan(
    questions: Sequence[PlanRequest], prices: Prices, tell: Callable[[str], None], *, compare: bool = False
) -> MadePlan:
    """The plan for all that is asked; ``compare``: with every policy simulated. ``tell``: says what takes long.

    BenchmarkError where a folder or a recording cannot be read.
    """
    if questions[0].users is not None:
        made = make_users_plan(questions[0], lambda search: _costing([search], prices), tell)
        return MadePlan(replace(made, priced=prices.given_types, missing=list(prices.remarks)))
    recordings: dict[Replay, Recorded] = {}
    endpoints: list[EndpointPlan] = []
    refused: list[Refused] = []
    cases: list[Case] = []
    for asked, searches in _groups(questions):
        if isinstance(searches, Refused):
            refused.append(searches)
            continue
        if asked.replay is not None and asked.replay not in recordings:
            recordings[asked.replay] = _read(asked.replay)
        recording = None if asked.replay is None else recordings[asked.replay]
        case = Case(asked, searches, demand_of(asked, recording), _costing(searches, prices))
        planned = _planned(case, compare=compare)
        if isinstance(planned, str):
            code = worst_exit_code(MISSED, *(each.exit_code for each in searches))
            warnings = [warning for each in searches for warning in each.warnings]
            refused.append(_named(Refused.of(planned, warnings, code), asked.name or case.main.name))
        else:
            endpoints.append(planned)
            cases.append(case)
    usual = questions[0]
    found = content(
        endpoints,
        refused,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        utilisation=usual.utilisation,
        spare=usual.spare,
        quota=_quotas(endpoints),
        priced=prices.given_types,
    )
    files, missing = _files(endpoints, cases)
    missing += [*_each_for_all(questions, cases), *prices.remarks]
    return MadePlan(replace(found, files=sorted(files), missing=missing), files)


def _each_for_all(questions: Sequence[PlanRequest], cases: Sequence[Case]) -> Iterator[str]:
    """A sentence for each question that several endpoints answer: none of them shares its load."""
    for asked in questions:
        own = [case for case in cases if case.asked is asked]
        if len(own) > 1:
            yield f"Each of the {len(own)} endpoints is planned for {load_text(own[0].demand.target_rps)}."


def _read(replay: Replay) -> Recorded:
    """The arrivals of a recording, read in parts; BenchmarkError for what is none."""
    import numpy as np

    from inference_benchmarker.recording.formats import opened_source
    from inference_benchmarker.recording.reading import ReplayedPart

    with opened_source(replay.file, replay.column) as source:
        part = ReplayedPart(replay, source)
        found = [part.dues(arrivals.at) / NS for arrivals in part.read(0, lambda *_: 0)]
        facts = part.facts()
    return recorded(np.concatenate(found), facts.length_ns / NS, facts.peak_rps)


def _groups(questions: Sequence[PlanRequest]) -> list[tuple[PlanRequest, list[Measured] | Refused]]:
    """The searches of each endpoint: those of one question that are of one endpoint belong together."""
    groups: list[tuple[PlanRequest, list[Measured] | Refused]] = []
    problems: list[str] = []
    for asked in questions:
        own: list[list[Measured]] = []
        for place, folder in enumerate(asked.capacities):
            try:
                found = read_search(folder, _count_of(asked, place), asked.instance_type, asked.tier)
            except BenchmarkError as error:
                problems.append(str(error))
                continue
            if isinstance(found, Refused):
                groups.append((asked, _named(found, asked.name or "/".join(filter(None, (folder.name, asked.tier))))))
                continue
            same = next((group for group in own if group[0].is_same_endpoint(found)), None)
            if same is None:
                own.append([found])
            else:
                same.append(found)
        if len(own) > 1 and asked.endpoint_name:
            problems.append(
                f"--endpoint-name is for one endpoint, and there are {len(own)}: name them in a --mix file."
            )
        groups += [(asked, group) for group in own]
    refuse(problems)
    return groups


def _named(found: Refused, name: str) -> Refused:
    """The reason as a sentence with the name of what is refused."""
    return replace(found, why=f"{name}: {found.why}.")


def _count_of(asked: PlanRequest, place: int) -> int | None:
    return None if not asked.instances else asked.instances[place if len(asked.instances) > 1 else 0]


def _planned(case: Case, *, compare: bool) -> EndpointPlan | str:
    with _of_this_tool(case.main):
        planned = endpoint_plan(case)
        if isinstance(planned, str):
            return planned
        planned = replace(planned, simulation=simulation(case, planned, compare=compare))
    return replace(planned, remarks=[*planned.remarks, *simulated_remarks(planned)])


@contextmanager
def _of_this_tool(search: Measured) -> Iterator[None]:
    """Tells what a search never writes as one sentence that names its file."""
    try:
        yield
    except UNREADABLE as error:
        raise foreign(Path(search.folder) / CAPACITY_FILE, error) from None


def _costing(searches: Sequence[Measured], prices: Prices) -> Callable[[int, float], Cost | None]:
    kind, region = searches[0].instance_type, searches[0].endpoint.region
    price = None if kind is None or searches[0].is_copies else prices.of(kind, region, _ranked_price(searches, kind))
    return lambda instances, rate: None if price is None else cost(price, instances, rate)


def _ranked_price(searches: Sequence[Measured], kind: str) -> Price | None:
    """The price of the type that a ranking had; None without one."""
    found = (each.price for each in searches if each.price is not None)
    return next((price for price in found if price.instance_type == kind), None)


def _quotas(endpoints: Sequence[EndpointPlan]) -> list[Quota] | None:
    """The quota of each instance type, compared with all endpoints at their maximum; None where it is unknown."""
    needed: dict[tuple[str, str | None], int] = {}
    for planned in endpoints:
        endpoint = planned.endpoint
        if endpoint and endpoint.instance_type and endpoint.kind != COMPONENT:
            key = endpoint.instance_type, endpoint.region
            needed[key] = needed.get(key, 0) + planned.chosen.maximum
    found = [quota(kind, region, count) for (kind, region), count in needed.items()]
    return [each for each in found if each is not None] or None


def _files(endpoints: Sequence[EndpointPlan], cases: Sequence[Case]) -> tuple[dict[str, str], list[str]]:
    """The policies by their names, and what is missing; those of several endpoints lie in a folder for each."""
    files: dict[str, str] = {}
    missing: list[str] = []
    folders: list[str] = []
    for planned, case in zip(endpoints, cases, strict=True):
        above = "" if len(cases) == 1 else f"{_unused(label(planned.name), folders)}/"
        with _of_this_tool(case.main):
            policies, sentences = policy_files(planned, case.main, case.asked.endpoint_name)
        texts = {name: json_text(made) for name, made in policies.items()}
        texts |= kubernetes_files(planned, name_of(planned.endpoint or Endpoint(), case.asked.endpoint_name))
        files |= {above + name: text for name, text in texts.items()}
        missing += [f"{above.rstrip('/')}: {sentence}" if above else sentence for sentence in sentences]
    return files, missing


def _unused(name: str, names: list[str]) -> str:
    number, found = 1, name
    while found in names:
        number += 1
        found = f"{name}-{number}"
    names.append(found)
    return found
