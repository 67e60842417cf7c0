"""``benchmark capacity --demo --llm``: conversations with an embedded LLM engine, for whatever is not given."""

from __future__ import annotations

import json
import shlex
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.capacity.users_flags import USERS
from inference_benchmarker.cli.core.embedded import embedded_endpoint
from inference_benchmarker.cli.core.terminal import passing, say
from inference_benchmarker.system.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

PROFILE = "8b-h100"
# Sessions of little more than a second, so that a minute of load has fifty lengths of one. Each request costs the
# engine more than this client: a client at its limit would find its own.
_CONVERSATIONS = {"turns": "2", "input_tokens": "500", "output_tokens": "40"}
_SEARCH = {"in": USERS, "think_time": "exponential:0.5s", "time": "75"}
_FIRST_USERS = {"start_users": "10"}  # growth from one user would take a third of the search
_LIMITS = ["ttft.p95<500ms", "tpot.p95<25ms"]
_INSTEAD = {
    "turns": ("conversations",),
    "input_tokens": ("conversations", "prompt", "body"),
    "output_tokens": ("conversations", "body"),
    "time": ("precision",),
}
_OWN = ("factories_file", "locust_file", "vary", "verify", "url")


def llm_problems(options: Mapping[str, Any], addresses: list[str]) -> Iterator[str]:
    """The problems of ``--llm`` beside what it is not for."""
    if not options.get("llm"):
        return
    if not options["demo"]:
        yield "--llm is for --demo: your own LLM is given by its URL, as in http://localhost:8000/v1."
    if given := next((name for name in _OWN if options[name]), None) or (addresses and "URL"):
        flag = given if given == "URL" else f"--{given.replace('_', '-')}"
        yield f"--llm has conversations with the engine that it starts: leave out {flag}."
    if options["in"] == "rps":
        yield "--llm searches for users or sessions: leave out --in rps."


@contextmanager
def engine_of_demo(options: dict[str, Any], addresses: list[str], problems: list[str]) -> Iterator[None]:
    """With ``--llm``: an engine that runs meanwhile, its address, and values of what is not given.

    The search is from then on that of any server with such an address. Without the flag, or where something is wrong
    already, nothing changes.
    """
    if not options.get("llm") or problems:
        yield
        return
    passing("Starting the embedded LLM engine…", quiet=options["quiet"])
    with embedded_endpoint(llm=PROFILE) as url, _metrics_of(url) as metrics:
        filled = fill_in(options)
        options["endpoint_config"] = options["endpoint_config"] or str(metrics)
        options["demo"] = None
        addresses.append(f"{url}/v1")
        if not options["quiet"]:
            say(f"For your own server: benchmark capacity http://HOST:PORT/v1 {filled}")
        yield


@contextmanager
def _metrics_of(url: str) -> Iterator[Path]:
    """The configuration of the engine's metrics page, which has vLLM's names: they name what gave in."""
    from inference_benchmarker.engine.processes.scratch import scratch_folder

    with scratch_folder("benchmark_demo_") as folder:
        config = folder / "vllm.json"
        replace_file(config, json.dumps([{"stream": "prometheus", "scrape_url": f"{url}/metrics", "preset": "vllm"}]))
        yield config


def fill_in(options: dict[str, Any]) -> str:
    """Values of what is not given, and the whole as flags."""
    wanted = {**_SEARCH, **_CONVERSATIONS} | (_FIRST_USERS if options["in"] in (None, USERS) else {})
    for name, value in wanted.items():
        if not any(options[each] for each in (name, *_INSTEAD.get(name, ()))):
            options[name] = value
    limits = "tier" if options["tier"] else "slo"
    options[limits] = options[limits] or list(_LIMITS)
    flags = [(name, options[name]) for name in wanted if options[name]] + [(limits, each) for each in options[limits]]
    return shlex.join(word for name, value in flags for word in (f"--{name.replace('_', '-')}", value))
