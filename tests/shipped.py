"""A shipped example as a user runs it: a wave with its file, in a folder of its own, against endpoints on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inference_benchmarker.embedded.aws.boto3_settings import boto3_settings
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FACTORIES = ROOT / "factories"
NAMES = sorted(
    path.relative_to(FACTORIES).with_suffix("").as_posix()
    for path in FACTORIES.rglob("*.py")
    if "def payload_factory" in path.read_text()
)


@dataclass(frozen=True)
class ExampleWave:
    """What a wave left: its exit code, its summary, and what it said."""

    exit_code: int
    summary: dict[str, Any]
    said: str

    @property
    def counts(self) -> tuple[int, int]:
        """Requests that succeeded and that failed."""
        ledger = self.summary["ledger"]
        return ledger["ok"], ledger["failed"]


def run_example(
    name: str,
    url: str,
    folder: Path,
    *flags: str,
    environment: Mapping[str, str] | None = None,
    load: tuple[str, ...] = ("--client-rps", "40", "--obs-time", "0.5"),
) -> ExampleWave:
    """Copy the example ``name`` (as in ``http/factories_get``) into ``folder`` and send 20 requests in half a second.

    ``url``: the embedded endpoint's, which is AWS to boto3. ``flags`` come last, so they replace those given here.
    """
    source = FACTORIES / f"{name}.py"
    copy = folder / "my_endpoint.py"
    copy.write_bytes(source.read_bytes())
    given = ["--endpoint-name", "demo", *load, "--json", "--quiet", *flags]
    clean = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "inference_benchmarker.cli", "--factories-file", str(copy), *given],
        cwd=folder,
        env={**clean, "PYTHONPATH": str(ROOT), "BENCHMARK_DEMO_URL": url, **boto3_settings(url), **(environment or {})},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.stdout, done.stderr
    return ExampleWave(done.returncode, json.loads(done.stdout), done.stderr)
