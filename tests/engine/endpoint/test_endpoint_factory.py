"""An endpoint_factory that is none, or does not as it should, is reported with its file and line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.engine.endpoint.endpoint_factory import begin, make, remove
from inference_benchmarker.errors import BenchmarkError

if TYPE_CHECKING:
    from pathlib import Path

YIELD = "It must create the endpoint, `yield` its name or URL once, and then remove it."


def test_it_runs_to_its_yield_and_then_to_its_end(tmp_path: Path) -> None:
    path, log = tmp_path / "mine.py", tmp_path / "log"
    path.write_text(
        "def endpoint_factory(instances, log):\n"
        "    open(log, 'a').write('made ')\n"
        "    yield f'endpoint-{instances}'\n"
        "    open(log, 'a').write('removed')\n"
    )
    generator = begin(path, {"instances": 2, "log": str(log)})
    assert not log.exists()
    assert make(path, generator) == "endpoint-2"
    assert log.read_text() == "made "
    remove(path, generator)
    remove(path, generator)
    assert log.read_text() == "made removed"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("", f": has no endpoint_factory. Define `def endpoint_factory(...)` in it. {YIELD}"),
        ("endpoint_factory = 3", f": endpoint_factory is an int; expected a generator function. {YIELD}"),
        (
            "def endpoint_factory(instances):\n    return 'a'",
            f", line 1: endpoint_factory is a function without `yield`; expected a generator function. {YIELD}",
        ),
        (
            "async def endpoint_factory(instances):\n    yield 'a'",
            f", line 1: endpoint_factory is a function without `yield`; expected a generator function. {YIELD}",
        ),
        (
            "def endpoint_factory(size=1):\n    yield 'a'",
            ", line 1: endpoint_factory cannot be called with these arguments (got an unexpected"
            " keyword argument 'instances'); it is endpoint_factory(size=1).",
        ),
        (
            "def endpoint_factory(instances):\n    if 0: yield",
            f", line 1: endpoint_factory yielded nothing; expected the endpoint's name or URL. {YIELD}",
        ),
        (
            "def endpoint_factory(instances):\n    yield 3",
            f", line 1: endpoint_factory yielded an int; expected a string, the endpoint's name or URL. {YIELD}",
        ),
        (
            "def endpoint_factory(instances):\n    yield ''",
            ", line 1: endpoint_factory yielded an empty string; expected a string, the endpoint's name or URL. "
            f"{YIELD}",
        ),
        (
            "def endpoint_factory(instances):\n    yield 'a'\n    yield 'b'",
            f", line 1: endpoint_factory yielded a second time. {YIELD}",
        ),
        (
            "def endpoint_factory(instances):\n    raise OSError(28, 'No room')\n    yield",
            ", line 2: endpoint_factory() raised OSError: [Errno 28] No room.",
        ),
        (
            "def endpoint_factory(instances):\n    yield 'a'\n    1 / 0",
            ", line 3: the end of endpoint_factory() raised ZeroDivisionError: division by zero.",
        ),
    ],
)
def test_one_that_is_none_is_reported_with_its_line(tmp_path: Path, source: str, expected: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(source)
    with pytest.raises(BenchmarkError, match=f"^{re.escape(str(path) + expected)}$"):
        _run(path)


def _run(path: Path) -> None:
    generator = begin(path, {"instances": 2})
    make(path, generator)
    remove(path, generator)
