"""The page on moving over, held against the original's names and against what this tool really has."""

from __future__ import annotations

import inspect
import json
import re
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import client_capacity
from client_capacity import deprecated_names
from client_capacity.client_metrics import IDLE
from client_capacity.conditions import Conditions
from client_capacity.limits import Limits, find_file_descriptors_limit
from client_capacity.saturation_result import RpsSaturation, WorkersRow
from client_capacity.search import Step
from client_capacity.worker_saturation import WorkerSaturation
from inference_benchmarker.cli.core import deprecated_flags
from inference_benchmarker.wave.run_dir import RunDir
from server_capacity.aiperf import export, installation, stage
from server_capacity.metrics.config import load_config
from tests import flags_page, original
from visualization.figures.bars import all_bars, choose

if TYPE_CHECKING:
    from client_capacity.deprecated_names import FormerKeys

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "how-to" / "moving.md").read_text()
STEPS = tuple(Step("repeating", 12, sent=sent) for sent in (36, 38))
CONDITIONS = Conditions(Path("f.py"))
RESULTS: dict[str, FormerKeys] = {
    "find_worker_saturation": WorkerSaturation(12, 10, 14, "client", STEPS, CONDITIONS, Path("runs")),
    "find_rps_saturation": RpsSaturation((WorkersRow(1, 12, None),), "client", CONDITIONS, Path("runs")),
    "find_file_descriptors_limit": find_file_descriptors_limit(),
}
ARGUMENTS = {
    "find_worker_saturation": (deprecated_names.WORKER_ARGUMENTS, deprecated_names.WORKER_ARGUMENTS_GONE),
    "find_rps_saturation": (deprecated_names.RPS_ARGUMENTS, deprecated_names.RPS_ARGUMENTS_GONE),
}
PARAMETERS = [(search, name) for search, names in original.PARAMETERS.items() for name in names]
KEYS = [(search, name) for search, names in original.KEYS.items() for name in names]


def table(heading: str, number: int = 0) -> dict[str, str]:
    """A table of old and new: what the page says of each name in its first column. ``number``: which of a section."""
    text = re.split(rf"^\| {re.escape(heading)} \| now \|\n\|---\|---\|\n", PAGE, flags=re.MULTILINE)[number + 1]
    rows = re.findall(r"\| (.+?) \| (.+) \|\n", re.match(r"(?:\|.*\n)+", text)[0])  # type: ignore[index]
    return {name: now for names, now in rows for name in re.findall(r"`(.+?)`", names)}


def named(now: str) -> list[str]:
    """The names in what the page says of today."""
    return re.findall(r"`(.+?)`", now)


def todays_flags() -> set[str]:
    return {flag for command in flags_page.COMMANDS for flag in flags_page.flags_of(command)}


@pytest.mark.parametrize(
    ("heading", "names", "number"),
    [
        ("old flag", original.FLAGS, 0),
        ("old flag", original.METRICS_FLAGS, 1),
        ("old file", original.FILES, 0),
        ("old file", [*original.EXAMPLES, *original.LOCUST_FILES], 1),
        ("old field", original.FIELDS, 0),
        *((f"argument of `{search}`", names, 0) for search, names in original.PARAMETERS.items()),
        *((f"key of `{search}`", names, 0) for search, names in original.KEYS.items()),
        ("old function", [f"{name}({', '.join(names)})" for name, names in original.FUNCTIONS.items()], 0),
    ],
)
def test_every_name_of_the_original_has_its_row_and_no_other_has(
    heading: str, names: list[str] | tuple[str, ...], number: int
) -> None:
    assert sorted(table(heading, number)) == sorted(names)


def test_a_flag_of_old_is_one_of_today_or_is_answered() -> None:
    known = todays_flags() | {"--init"}
    for flag, now in table("old flag").items():
        if flag in deprecated_flags.GONE:
            assert now.startswith("nothing: "), flag
            assert "The flag is ignored, and a line says so" in now, flag
        else:
            today = deprecated_flags.RENAMED.get(flag, flag)
            assert today in known, flag
            assert named(now)[0].removeprefix("./benchmark ") == today, flag


def test_what_a_file_is_now_is_written() -> None:
    run_dir = RunDir(Path("run"))
    ours = {str(path.relative_to("run")) for path in _paths(run_dir)}
    of_aiperf = {stage.INPUTS, installation.LOG, export.SUMMARY}
    written = ours | {f"aiperf/{name}" for name in of_aiperf} | {"locust_stats", "aiperf", "logs"}
    for name, now in table("old file").items():
        files = [each.rstrip("/") for each in named(now) if "." in each or "/" in each]
        assert files, name
        assert set(files) <= written, name


def _paths(run_dir: RunDir) -> list[Path]:
    values = [getattr(run_dir, name) for name, kind in vars(RunDir).items() if isinstance(kind, property)]
    return [value for value in values if isinstance(value, Path)]


@pytest.mark.parametrize("field", original.FIELDS)
def test_a_field_of_old_draws_what_the_page_says(field: str) -> None:
    for source in ("locust", "aiperf"):
        (bars,) = choose(all_bars(()), {source: [field]})
        assert bars.field == named(table("old field")[field])[0]


@pytest.mark.parametrize(("search", "name"), PARAMETERS)
def test_a_parameter_of_old_is_accepted_as_the_page_says(search: str, name: str) -> None:
    known, gone = ARGUMENTS[search]
    now = table(f"argument of `{search}`")[name]
    parameters = inspect.signature(getattr(client_capacity, search)).parameters
    if name in gone:
        assert now.startswith("no meaning: ")
    elif name in known:
        assert named(now)[0] == known[name]
        assert known[name] in parameters
    elif name == deprecated_names.WAIT:
        assert "`wait_for_client_idle`" in now
    else:
        assert name in parameters
        assert named(now)[0] == name


@pytest.mark.parametrize(("search", "key"), KEYS)
def test_a_key_of_old_has_a_value_or_says_where_to_look(search: str, key: str) -> None:
    result, now = RESULTS[search], table(f"key of `{search}`")[key]
    assert (key in result) == (not now.startswith("not kept: "))
    if key in result.gone:
        with pytest.raises(KeyError, match=f"{key} is not kept any more: "):
            result[key]
    for name in named(now):
        assert any(hasattr(kind, name) for kind in (type(result), Step, WorkersRow, Limits)) or _is_part(result, name)


def _is_part(result: FormerKeys, name: str) -> bool:
    """Tells whether it is a key of what the old keys give."""
    parts: list[Any] = list(result.values())
    return any(isinstance(part, dict) and name in part for part in parts)


@pytest.mark.parametrize(("path", "parameters"), original.FUNCTIONS.items())
def test_a_function_of_old_is_there_with_its_parameters(path: str, parameters: list[str]) -> None:
    module, _, name = path.rpartition(".")
    found = inspect.signature(getattr(import_module(module), name)).parameters
    assert list(found)[: len(parameters)] == parameters
    with suppress(KeyError):
        assert found["say"].default is not inspect.Parameter.empty


def test_the_keys_of_waiting_are_those_of_old() -> None:
    assert list(IDLE) == original.WAIT_KEYS
    (row,) = [now for name, now in table("old function").items() if "wait_for_client_idle" in name]
    assert set(original.WAIT_KEYS) <= set(named(row))


def test_what_the_metrics_script_was_given_is_in_the_configuration_that_the_page_names() -> None:
    (named_file,) = set(re.findall(r"`(server_capacity/server_metrics_configs/\w+\.json)`", PAGE))
    (block,) = json.loads((ROOT / named_file).read_text(encoding="utf-8"))
    assert load_config(ROOT / named_file)
    keys = [key.strip('"') for now in table("old flag", 1).values() for key in named(now) if key.startswith('"')]
    assert keys
    assert set(keys) <= {*block, "region"}
    flags = [name.split(" ")[0] for now in table("old flag", 1).values() for name in named(now) if name[0] == "-"]
    assert {"--window", "--json"} == set(flags) <= flags_page.flags_of("metrics")


def test_the_examples_of_old_are_where_the_page_says() -> None:
    rows = table("old file", 1)
    for name in original.EXAMPLES:
        folder = named(rows[name])[0]
        assert (ROOT / "factories" / folder / f"{name}.py").is_file()
