"""The modules that a wave's processes have loaded when they end: none of what only other commands need."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.bench import Bench

pytestmark = pytest.mark.process

OF_OTHERS = {"boto3", "botocore", "matplotlib", "pandas", "pytest", "scipy", "shtab", "yaml"}
OF_A_PAGE = {"flask", "jinja2", "socketio", "werkzeug"}  # Locust's, which is asked for by --ui
OF_LOCUST = {"gevent", "locust", "requests"}
OF_NUMBERS = {"numpy", "pyarrow"}


def loaded(text: str) -> set[str]:
    """The packages that an interpreter says it has imported."""
    return set(re.findall(r"^import time: +\d+ \| +\d+ \| +(\w+)", text, re.MULTILINE))


def test_a_wave_loads_nothing_that_only_other_commands_need(bench: Bench) -> None:
    with bench.endpoint() as endpoint:
        telling = {"PYTHONPROFILEIMPORTTIME": "1"}
        flags = ("--client-rps", 20, "--obs-time", "0.2", "--sample-client-hw")
        wave = bench.run(*flags, target=endpoint, environment=telling)
    logs = wave.folder / "logs"
    parent, primary, worker = map(
        loaded, (wave.err, *((logs / f"{name}.log").read_text() for name in ("primary", "worker_0")))
    )
    assert {"numpy", "pyarrow"} <= parent
    assert "locust" in primary & worker
    assert parent & (OF_OTHERS | OF_A_PAGE | OF_LOCUST) == set()
    assert (primary | worker) & (OF_OTHERS | OF_A_PAGE | OF_NUMBERS) == set()
