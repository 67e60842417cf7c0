"""A process that stands for one that makes an endpoint and searches it: it finds at once what its job's name says.

``servers=N`` holds N times 100/s; ``fails`` fails; ``dies`` dies; ``stopped`` ends as by SIGTERM; ``waits`` waits
until it is interrupted.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from inference_benchmarker.words.redact import hide_values_of, without


def main() -> None:
    hide_values_of(os.environ)
    job = json.loads(sys.stdin.readline())
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for place, name in enumerate(job["names"]):
        sys.stdout.write(json.dumps({"place": place, **_found(job, place, name)}) + "\n")
        sys.stdout.flush()


def _end_with_parent() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGKILL)


def _found(job: dict[str, Any], place: int, name: str) -> dict[str, Any]:
    kind = name.rpartition("=")[2]
    if kind == "fails":
        return {"failed": "f.py, line 3: endpoint_factory() raised ValueError: no."}
    if kind == "stopped":
        sys.exit(130)
    if kind == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    outcome, code = "found", 0
    folder = Path(job["folder"]) / f"{os.getpid()}-{place}_capacity"
    folder.mkdir()
    if kind == "waits":
        (folder / "waits").write_text(str(os.getpid()))
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            outcome, code, kind = "interrupted", 130, "1"
    rate = 100.0 * int(kind)
    endpoint = {"instance_type": job["known"].get("instance_type"), "instances": 1, "arguments": job["arguments"]}
    data = {
        "schema_version": 1,
        "outcome": outcome,
        "exit_code": code,
        "headline": f"{rate:g}/s",
        "rate": rate,
        "interval": {"low": rate * 0.97, "high": rate * 1.03},
        "limit": "p99<1s",
        "reason": "",
        "arrivals": "poisson",
        "confirmation": [{"rate": rate * 0.97, "seconds": 10.0, "verdict": "holds", "limits": []}],
        "endpoint": {**endpoint, "payload_arguments": job["payloads"][place]},
    }
    (folder / "capacity.json").write_text(without(json.dumps(data)))
    return {"folder": folder.name}


if __name__ == "__main__":
    main()
