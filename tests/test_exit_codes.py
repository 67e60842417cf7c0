"""Tests of the exit codes."""

from __future__ import annotations

import ast
import re
import subprocess
from itertools import product
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.exit_codes import GRAVEST_FIRST, INVALID, worst_exit_code
from tests.bench import ROOT
from tests.case import case

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGES = ("inference_benchmarker", "server_capacity", "client_capacity", "visualization")
ASKED = {
    "inference_benchmarker/engine/check.py": "says how the process ended; its result is a file",
    "inference_benchmarker/engine/hosts/preparing.py": "any but 0 of pip or ssh is a sentence on the host",
    "inference_benchmarker/engine/hosts/ssh.py": "any but 0 of ssh is a sentence on the host",
    "inference_benchmarker/engine/pods/kubectl.py": "any but 0 of kubectl is a sentence on the cluster",
    "inference_benchmarker/system/output.py": "hands it to its two callers, preparing and performing",
    "inference_benchmarker/engine/hosts/unpacking.py": "any but 0 of pip is a sentence on the host",
    "server_capacity/aiperf/tokenizer.py": "a code of our own, else the reason is that it ended",
    "server_capacity/provisioning/performing.py": "any but 0 was not done",
}
"""Who reads how a process ended: none of them makes it part of an exit code."""

UNKNOWN = (137, 139, 143, 4, 255, -9, -11)


@pytest.mark.parametrize(
    ("codes", "code"), [((0, 0), 0), ((0, 1), 1), ((3, 1), 3), ((3, 130), 130), ((1, 130, 2, 3), 2), ((0,), 0)]
)
def test_the_gravest_exit_code_counts(codes: tuple[int, ...], code: int) -> None:
    assert worst_exit_code(*codes) == code


def test_an_unknown_exit_code_is_graver_than_every_known_one() -> None:
    for one, other in product((*UNKNOWN, *GRAVEST_FIRST), repeat=2):
        unknown = [code for code in (one, other) if code in UNKNOWN]
        known = next(code for code in (2, 130, 3, 1, 0, None) if code in (one, other, None))
        with case(one, other):
            assert worst_exit_code(one, other) == (unknown[0] if unknown else known)


def test_no_stored_exit_code_is_no_pass() -> None:
    assert worst_exit_code(0, None) == worst_exit_code(None) == INVALID


def combining(tree: ast.AST) -> Iterator[ast.expr]:
    """The expressions that choose among exit codes by their size or their truth."""
    for node in ast.walk(tree):
        by_size = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("max", "min")
        by_truth = isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or)
        if isinstance(node, ast.expr) and (by_size or by_truth):
            yield node


def several_codes(node: ast.expr) -> bool:
    """Tells whether it is a choice among exit codes; in a condition, or with a constant beside it, it is none."""
    parts = node.values if isinstance(node, ast.BoolOp) else getattr(node, "args", [])
    reported = [
        re.search(r"exit_code|\bcodes?\b", ast.unparse(part)) and "==" not in ast.unparse(part) for part in parts
    ]
    return sum(map(bool, reported)) > (1 if isinstance(node, ast.BoolOp) else 0)


def sources() -> list[Path]:
    return [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def test_exit_codes_are_combined_by_one_function() -> None:
    """Not by their size, by which 130 is graver than 2 and -9 than nothing, and not by the first that is not 0."""
    assert [*map(several_codes, combining(ast.parse("max(a.exit_code, 3)\na.exit_code or code\n")))] == [True, True]
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sources()
        if path.name != "exit_codes.py"
        for node in combining(ast.parse(path.read_text()))
        if several_codes(node)
    ]
    assert found == []


def test_how_a_process_ended_is_read_in_known_places_alone() -> None:
    assert {str(path.relative_to(ROOT)) for path in sources() if ".returncode" in path.read_text()} == {*ASKED}


def test_the_action_combines_exit_codes_as_the_command_does() -> None:
    text = (ROOT / "delivery" / "action.sh").read_text()
    (function,) = re.findall(r"^worse\(\) \{\n.*?^\}\n", text, re.MULTILINE | re.DOTALL)
    pairs = [*product((*GRAVEST_FIRST, 137, 139, 255), repeat=2)]
    calls = "\n".join(f"worse {one} {other}; echo" for one, other in pairs)
    done = subprocess.run(["bash", "-c", function + calls], capture_output=True, text=True, check=True, timeout=60)
    assert [*map(int, done.stdout.split())] == [worst_exit_code(*pair) for pair in pairs]
    assigned = re.findall(r"(?<![\w-])(?:worst|code)=(\$\([^\n]*\)|[^\s;]*)", text)
    others = [each for each in assigned if not each.startswith("$(worse ")]
    assert {*others} == {"0", "$?", "3"}
    assert others.count("3") == 2, "judge_by where there is no verdict, and the gate where a step reported no exit code"
