"""``--demo``: what stands in for the flags that are not given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.terminal import say
from inference_benchmarker.system.packaged import demo_factories, demo_metrics

if TYPE_CHECKING:
    from collections.abc import Mapping

DEMO_DEFAULTS = {"client_rps": "100", "obs_time": "10", "workers": "2"}
# aiperf takes milliseconds of CPU for a stream: at 100/s it would measure itself
DEMO_WITH_AIPERF = {**DEMO_DEFAULTS, "client_rps": "20"}
# Gentle to a server of which nothing is known; a language model takes seconds for what others do in milliseconds.
ADDRESS_DEFAULTS = {"client_rps": "10", "obs_time": "10"}
MODEL_DEFAULTS = {"client_rps": "2", "obs_time": "10"}
_INSTEAD = {
    "client_rps": ("concurrency", "stages", "replay"),
    "obs_time": ("num_requests", "stages", "replay", "interactive"),
}


def fill_in_demo(options: dict[str, Any]) -> None:
    """Defaults of the demo for what is not given."""
    if options["workers"] is None and "1" in (options["concurrency"], options["max_in_flight"]):
        options["workers"] = "1"
    with_aiperf = bool(options["aiperf"] or options["aiperf_only"])
    fill_in_load(options, DEMO_WITH_AIPERF if with_aiperf else DEMO_DEFAULTS)
    if options["factories_file"] is None and options["locust_file"] is None:
        options["factories_file"] = str(demo_factories(chat=with_aiperf))
        if options["endpoint_config"] is None:
            options["endpoint_config"] = str(demo_metrics())


def say_simulated(options: Mapping[str, Any]) -> None:
    """Say why there will be metrics of an instance that nobody deployed, if there will be."""
    if options["demo"] and options["endpoint_config"] == str(demo_metrics()) and not options["quiet"]:
        say("The embedded endpoint simulates an instance and its CloudWatch metrics.")


def fill_in_load(options: dict[str, Any], defaults: Mapping[str, str]) -> dict[str, str]:
    """The load for which nothing is given yet; it is part of the options from then on."""
    missing = {
        name: value
        for name, value in defaults.items()
        if not any(options[each] for each in (name, *_INSTEAD.get(name, ())))
    }
    options |= missing
    return missing
