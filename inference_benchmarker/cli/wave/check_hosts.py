"""`benchmark check --hosts`: one request, or one session, from each host, in a wave that is not kept."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.terminal import print_report
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.exit_codes import BAD_INPUT, MISSED, OK, worst_exit_code

if TYPE_CHECKING:
    from inference_benchmarker.plan.hosts import Hosts, PlannedHost
    from inference_benchmarker.plan.plan import WavePlan


def check_from_hosts(plan: WavePlan, hosts: Hosts, *, as_json: bool) -> int:
    """Send the plan's one arrival from each host in turn, say what came of each, and give the exit code."""
    found = []
    for host in hosts.hosts:
        found.append(_from_host(plan, hosts, replace(host, workers=1)))
        if not as_json:
            print_report(f"{_line(found[-1])}\n")
    if as_json:
        print(json.dumps({"hosts": found}, indent=2), flush=True)
    return worst_exit_code(*(row["exit_code"] for row in found))


def _from_host(plan: WavePlan, hosts: Hosts, host: PlannedHost) -> dict[str, Any]:
    from inference_benchmarker.engine.launch import run_wave

    with tempfile.TemporaryDirectory(prefix="benchmark_check_") as folder:
        alone = replace(plan.on(replace(hosts, hosts=(host,))), output_dir=Path(folder), abort=False)
        try:
            wave = run_wave(alone)
        except BenchmarkError as error:
            why = str(error).removeprefix(f"{host.name} cannot be used: ").removeprefix(f"{host.name}: ")
            nothing = {"latency_s": None, "turns": None}
            return {"name": host.name, "ok": False, "error": why, **nothing, "exit_code": BAD_INPUT}
        summary, ledger = wave.summary, wave.summary.ledger
        first = next((f"{row.key}: {row.texts[0]}" if row.texts else row.key for row in summary.errors), None)
        ok = (ledger.sessions_completed if wave.has_sessions else ledger.ok) == 1
        return {
            "name": host.name,
            "ok": ok,
            "error": None if ok else first or ("its session did not end" if ledger.sent else "no request was sent"),
            "latency_s": None if summary.latency is None else summary.latency.mean,
            "turns": ledger.turns if wave.has_sessions else None,
            "exit_code": OK if ok else MISSED,
        }


def _line(row: dict[str, Any]) -> str:
    from inference_benchmarker.words.text import one_line
    from inference_benchmarker.words.wording import duration_text, pluralize

    if row["ok"]:
        took = f"answered in {duration_text(row['latency_s'])}"
        if row["turns"] is not None:
            took = f"a session of {pluralize(row['turns'], 'turn', 'turns')}, {took} on average"
        return f"✓ {row['name']}: {took}."
    return f"✗ {row['name']}: {one_line(row['error'], 500)}"
