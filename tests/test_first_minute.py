"""From nothing to a verdict: two commands, a clone and a wave against an own address, as README has them."""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.embedded.running import EndpointConfig, start
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

MOST_S = 180


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_commands_lead_from_a_clone_to_the_verdict_on_an_own_address(tmp_path: Path) -> None:
    clone = tmp_path / "inference-benchmarker"
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    with start(EndpointConfig()) as endpoint:
        begun = time.monotonic()
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        wave = ("./benchmark", f"{endpoint.url}/invocations", "--body", '{"inputs": "a text"}')
        done = subprocess.run(wave, cwd=clone, env=clean, capture_output=True, text=True, check=False)
        took_s = time.monotonic() - begun
        routes = endpoint.arrivals()["route"]
    assert done.stdout.splitlines()[0].startswith(("VALID", "INVALID, client-limited")), done.stdout + done.stderr
    assert "Total requests fired: 100" in done.stdout
    assert routes == ["/invocations"] * 100
    assert took_s < MOST_S
