"""Routing of conversations: as many LLM engines as replicas behind a router, and the few that a plan simulates."""

from __future__ import annotations

import random
from dataclasses import replace

from inference_benchmarker.embedded.llm.rules import PROFILES
from inference_benchmarker.plan.slo import Slo
from server_capacity.planning.users.replica import Replicas
from server_capacity.search.limits import Limit
from tests.performance.figures import Figure, Program
from tests.routed_fleet import Fleet, talk

_CASES = ((426_784, 16, 45, False), (426_784, 16, 85, True), (426_784, 32, 45, False), (60_000, 16, 20, False))


def compared(kv_tokens: int, replicas: int, users: int, measured: int, *, aware: bool) -> list[Figure]:
    """The hit rate and the share over 40 ms a token, of all engines and of the few."""
    rules = replace(PROFILES["8b-h100"], kv_tokens=kv_tokens)
    sessions = [talk(random.Random(number)) for number in range(300)]
    limit = Limit.of(Slo.parse("tpot.p95<40ms"), "latency")
    truth = Fleet(rules, sessions, replicas, users, 0.040, aware=aware).run(measured)
    found = Replicas(rules, sessions, [limit], replicas=replicas, aware=aware).run(users, measured)
    kind = "prefix-aware" if aware else "random"
    name = f"{kind}, {replicas} replicas of {kv_tokens:,} tokens, {users} users each"
    return [
        Figure(f"{name}: hits of all", 100 * truth.hit_rate, "%"),
        Figure(f"{name}: hits of the few", 100 * found.hit_rate, "%"),
        Figure(f"{name}: over in all", 100 * truth.over, "%"),
        Figure(f"{name}: over in the few", 100 * found.over[0] / found.of[0], "%"),
    ]


def measure(seconds: float) -> list[Figure]:
    """Every case, with so many conversations for each second."""
    return [
        figure
        for kv_tokens, replicas, users, aware in _CASES
        for figure in compared(kv_tokens, replicas, users, round(50 * seconds), aware=aware)
    ]


PROGRAM = Program("routing over LLM engines", measure, 60, 5)

if __name__ == "__main__":
    PROGRAM.main()
