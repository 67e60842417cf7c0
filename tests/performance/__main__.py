"""All measurements, one after the other: ``python -m tests.performance [--quick] [NAME ...]``.

Quiet the machine first: every figure includes what else it does. The exit code is 1 where a figure falls
short. Two run only where they are named: real_servers installs 2 GB, and soak takes half an hour.

``python -m tests.performance capacity`` has options of its own: searches for the capacity of simulated endpoints;
so have ``capacity-twin``, queueing models that are fitted on such searches, ``capacity-users``, searches in users,
``capacity-sessions``, searches in sessions, ``capacity-slow-queues``, of queues whose answers take seconds,
``capacity-surface``, capacities at lengths nobody sent, ``capacity-tiers``, of two tiers, and ``capacity-proof``,
proofs of plans.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from tests.performance import (
    ab,
    aiperf,
    assembly,
    bursts,
    ceiling,
    clients,
    comparison,
    exporting,
    fleet,
    fleet_spike,
    floor,
    harness,
    kills,
    kills_of_endpoints,
    limits,
    live_view,
    llm_engine,
    loading,
    many_runs,
    memory,
    overhead,
    pacing,
    planning,
    port,
    real_servers,
    recording,
    reporting,
    routing,
    saturation,
    server_metrics,
    sessions,
    soak,
    stages,
    stall,
    startup,
    steering,
    streams,
    truth,
    turns,
)
from tests.performance.figures import Program, machine

PROGRAMS = {
    "pacing": pacing.PROGRAM,
    "stages": stages.PROGRAM,
    "steering": steering.PROGRAM,
    "bursts": bursts.PROGRAM,
    "ceiling": ceiling.PROGRAM,
    "overhead": overhead.PROGRAM,
    "harness": harness.PROGRAM,
    "floor": floor.PROGRAM,
    "port": port.PROGRAM,
    "reporting": reporting.PROGRAM,
    "live_view": live_view.PROGRAM,
    "exporting": exporting.PROGRAM,
    "streams": streams.PROGRAM,
    "clients": clients.PROGRAM,
    "truth": truth.PROGRAM,
    "turns": turns.PROGRAM,
    "sessions": sessions.PROGRAM,
    "limits": limits.PROGRAM,
    "stall": stall.PROGRAM,
    "startup": startup.PROGRAM,
    "memory": memory.PROGRAM,
    "recording": recording.PROGRAM,
    "saturation": saturation.PROGRAM,
    "comparison": comparison.PROGRAM,
    "ab": ab.PROGRAM,
    "many_runs": many_runs.PROGRAM,
    "assembly": assembly.PROGRAM,
    "loading": loading.PROGRAM,
    "server_metrics": server_metrics.PROGRAM,
    "kills": kills.PROGRAM,
    "kills_of_endpoints": kills_of_endpoints.PROGRAM,
    "fleet": fleet.PROGRAM,
    "fleet_spike": fleet_spike.PROGRAM,
    "planning": planning.PROGRAM,
    "aiperf": aiperf.PROGRAM,
    "soak": soak.PROGRAM,
    "llm_engine": llm_engine.PROGRAM,
    "routing": routing.PROGRAM,
    "real_servers": real_servers.PROGRAM,
}
USUAL = [name for name in PROGRAMS if name not in ("soak", "real_servers")]


def run(program: Program, *, quick: bool) -> bool:
    """One program; what cannot be measured is said and falls short, and the others still run."""
    try:
        return program.run(program.quick_seconds if quick else program.seconds)
    except RuntimeError as error:
        print(f"{program.title}: not measured. {error}", end="\n\n", flush=True)
        return False


_WITH_OPTIONS = {
    "capacity": "searches",
    "capacity-proof": "proofs",
    "capacity-twin": "twins",
    "capacity-sessions": "sessions",
    "capacity-slow-queues": "slow_queues",
    "capacity-surface": "surface",
    "capacity-tiers": "tiers",
    "capacity-users": "users",
}
"""Measurements with options of their own, by the module of each."""


def main() -> None:
    if own := _WITH_OPTIONS.get(" ".join(sys.argv[1:2])):
        import_module(f"tests.performance.capacity.{own}").main(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(prog="python -m tests.performance", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(PROGRAMS)} (default: all but the last two)"
    )
    parser.add_argument("--quick", action="store_true", help="short waves: a look, no figures to write down")
    options = parser.parse_args()
    unknown = set(options.names) - set(PROGRAMS)
    if unknown:
        parser.error(f"no such measurement: {', '.join(sorted(unknown))}")
    print(machine(), end="\n\n", flush=True)
    met = [run(PROGRAMS[name], quick=options.quick) for name in options.names or USUAL]
    raise SystemExit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
