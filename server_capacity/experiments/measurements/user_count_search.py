"""A search in users: its controller, its answer, and the response time law that holds for any closed population.

In the long run N = X (R + Z): users, requests a second, mean latency and mean think time (Denning and Buzen, The
Operational Analysis of Queueing Network Models, ACM Computing Surveys 10, 1978).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.plan.load import ClosedLoop
from server_capacity.experiments.measurements.limit_rows import interval_of
from server_capacity.results.types.capacity import Law, Users
from server_capacity.search.estimate import answer
from server_capacity.search.keeping_up import SLOWER, slower_of
from server_capacity.search.limits import held_against
from server_capacity.search.search import Search
from server_capacity.search.session_answer import answer_in_sessions
from server_capacity.search.sessions import SessionSearch
from server_capacity.search.users import UserSearch, answer_in_users

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.wave.wave import Wave
    from server_capacity.experiments.measurements.question import Question, SessionShape
    from server_capacity.search.answer import Answer
    from server_capacity.search.stretch import Stretch


AnySearch = Search | UserSearch | SessionSearch


def search_of(question: Question) -> AnySearch:
    """The controller of a search, in requests/s, users or sessions; streamed requests are like sessions of one turn."""
    if (shape := question.shape) is not None:
        single, slower = _kind(question, shape)
        of = {"in_users": question.in_users, "single": single}
        return SessionSearch(question.limits, question.settings, shape.seconds, slower=slower, **of)
    if question.in_users:
        return UserSearch(question.limits, question.settings, question.think_s)
    return Search(question.limits, question.settings)


def answer_of(question: Question, stretches: Sequence[Stretch]) -> Answer:
    """The answer of a search, from what was counted by when requests were due."""
    if (shape := question.shape) is not None:
        limits, settings, seconds = question.limits, question.settings, shape.seconds
        single, slower = _kind(question, shape)
        of = {"in_users": question.in_users, "single": single}
        found = answer_in_sessions(limits, settings, stretches, seconds, slower=slower, **of)
    elif question.in_users:
        found = answer_in_users(question.limits, question.settings, stretches, question.think_s)
    else:
        found = answer(question.limits, question.settings, stretches)
    return held_against(question.limits, stretches, found)


def _kind(question: Question, shape: SessionShape) -> tuple[bool, float]:
    """It is of single streamed requests, and how many times slower than alone its answers may be."""
    single = question.sessions is None
    return single, slower_of(question.limits, shape.token_s) if single else SLOWER


def users_of(question: Question, found: Answer, wave: Wave | None) -> Users | None:
    """The part of the result on users; None of a search in requests/s. ``wave``: that which confirmed, if any."""
    if not question.in_users or question.sessions is not None:
        return None
    held = None if wave is None else _law_in(wave, question.think_s)
    return Users(
        found.rate,
        interval_of(found.interval),
        think="0s" if question.think is None else question.think.text,
        think_s=question.think_s,
        response_s=None if held is None else held.r,
        law=held,
    )


def _law_in(wave: Wave, think_s: float) -> Law | None:
    """The law in a wave of one population; None where nothing was answered."""
    load, latency = wave.plan.load, wave.summary.latency
    if latency is None or not isinstance(load, ClosedLoop):
        return None
    return law(load.concurrency, wave.summary.rates.sent, latency.mean, think_s)


def law(users: int, x: float, r: float, z: float) -> Law:
    """X (R + Z) as ``n``, and that over the users that there were; ``x`` in requests/s, ``r`` and ``z`` in seconds."""
    n = x * (r + z)
    return Law(x, r, z, n, users, over=n / users)
