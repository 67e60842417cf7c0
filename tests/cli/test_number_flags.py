"""Every flag that takes a number, of every command: what is no number of the kind is refused, in one sentence."""

from __future__ import annotations

import importlib
import pkgutil
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker import cli
from inference_benchmarker.cli.core.flags import Flag
from inference_benchmarker.cli.dispatch import main
from inference_benchmarker.errors import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Iterator


def flags_in(value: Any) -> Iterator[Flag]:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    if isinstance(value, Flag):
        yield value
    else:
        for part in parts:
            yield from flags_in(part)


def number_flags() -> dict[str, Flag]:
    """By command line module and name: flags whose parser makes a number."""
    found: dict[str, Flag] = {}
    for module in pkgutil.walk_packages(cli.__path__, f"{cli.__name__}."):
        if module.name.endswith("__main__"):
            continue
        for value in vars(importlib.import_module(module.name)).values():
            found |= {f"{module.name} {each.flag}": each for each in flags_in(value) if makes_a_number(each)}
    return found


def makes_a_number(flag: Flag) -> bool:
    for text in ("3", "0.5", "1MiB"):
        try:
            return isinstance(flag.parse(flag.flag, text), (int, float, Decimal))
        except BenchmarkError:
            continue
    return False


FLAGS = number_flags()


@pytest.mark.parametrize(
    "text", ["nan", "inf", "-inf", "Infinity", "1e400", "-1e400", "1e-999999999", "1e999999999", "\uff11"]
)
def test_what_is_no_number_is_refused_by_every_flag(text: str) -> None:
    assert len(FLAGS) > 60
    accepted = {}
    for name, flag in FLAGS.items():
        with suppress(BenchmarkError):
            accepted[name] = flag.parse(flag.flag, text)
    assert len(FLAGS) > 70
    assert not accepted


COMMANDS = {
    "wave_flags": ["URL", "--body", "{}", "--client-rps", "1", "--obs-time", "1"],
    "capacity_flags": ["capacity", "URL", "--body", "{}", "--slo", "p99<1s"],
    "plan_flags": ["plan", "nowhere_capacity"],
    "client_flags": ["client", "rps-saturation", "URL", "--body", "{}"],
    "endpoint_flags": ["endpoint"],
}


@pytest.mark.parametrize("module", COMMANDS)
def test_each_command_reads_each_of_its_numbers(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One that is not read is taken, whatever it says."""
    taken = []
    for name, flag in FLAGS.items():
        if name.split()[0] == module:
            main([each.replace("URL", URL) for each in COMMANDS[module]] + [f"{flag.flag}=nan"])
            if flag.flag not in capsys.readouterr().err:
                taken.append(flag.flag)
    assert not taken


URL = "http://127.0.0.1:9/"
LOAD = ["--body", "{}", "--client-rps", "1", "--obs-time", "1"]


@pytest.mark.parametrize(
    "arguments",
    [
        [URL, *LOAD, "--metrics-wait=-1"],
        [URL, *LOAD, "--warmup=-1"],
        [URL, *LOAD, "--success-threshold=1.5"],
        ["capacity", URL, "--body", "{}", "--slo", "p99<1s", "--precision=-0.1"],
        ["capacity", URL, "--body", "{}", "--slo", "p99<1s", "--max-rps=-5"],
        ["capacity", URL, "--body", "{}", "--slo", "p99<1s", "--soak=-5"],
        ["plan", "nowhere_capacity", "--target-rps=-10"],
        ["plan", "nowhere_capacity", "--target-rps=10", "--utilisation=1.5"],
        ["client", "rps-saturation", URL, "--body", "{}", "--worker-rps=-5"],
        ["endpoint", "--service-time=-1"],
        ["endpoint", "--error-share=1.5"],
    ],
    ids=lambda each: each[-1],
)
def test_a_number_that_is_out_of_its_bounds_is_refused_by_name(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert arguments[-1].split("=")[0] in capsys.readouterr().err
