"""Random routing of conversations: several LLM engines behind a router, and the one engine that a plan simulates."""

from __future__ import annotations

import random
from dataclasses import replace

from inference_benchmarker.embedded.llm.rules import PROFILES
from inference_benchmarker.plan.slo import Slo
from server_capacity.planning.users.replica import Replica
from server_capacity.search.limits import Limit
from tests.performance.figures import Figure, Program
from tests.routed_fleet import Fleet, talk

_CASES = ((426_784, 1, 100), (426_784, 2, 80), (426_784, 4, 70), (426_784, 8, 65), (60_000, 2, 60), (60_000, 4, 60))


def compared(kv_tokens: int, replicas: int, users: int, measured: int) -> list[Figure]:
    """The hit rate and the share over 40 ms a token, of several engines and of one."""
    rules = replace(PROFILES["8b-h100"], kv_tokens=kv_tokens)
    sessions = [talk(random.Random(number)) for number in range(300)]
    limit = Limit.of(Slo.parse("tpot.p95<40ms"), "latency")
    truth = Fleet(rules, sessions, replicas, users, 0.040).run(measured * replicas)
    found = Replica(rules, sessions, [limit], 0.0, replicas).run(users, measured)
    name = f"{replicas} replicas of {kv_tokens:,} tokens, {users} users each"
    return [
        Figure(f"{name}: hits of the fleet", 100 * truth.hit_rate, "%"),
        Figure(f"{name}: hits of one engine", 100 * found.hit_rate, "%"),
        Figure(f"{name}: over in the fleet", 100 * truth.over, "%"),
        Figure(f"{name}: over in one engine", 100 * found.over[0] / found.of[0], "%"),
    ]


def measure(seconds: float) -> list[Figure]:
    """Every case, with eight conversations of each engine for each second."""
    return [figure for case in _CASES for figure in compared(*case, round(8 * seconds))]


PROGRAM = Program("random routing over LLM engines", measure, 100, 5)

if __name__ == "__main__":
    PROGRAM.main()
