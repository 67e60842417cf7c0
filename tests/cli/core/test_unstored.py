"""An answer that cannot be stored is printed, then a line says why, and the exit code is 3."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, NoReturn

import pytest

from inference_benchmarker.cli.capacity import surface, verifying
from inference_benchmarker.cli.core.unstored import code_of, stored
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.exit_codes import BAD_INPUT, INTERRUPTED, INVALID, MISSED, OK
from tests.proofs import proof, ran
from tests.surfaces import surface as surface_result

if TYPE_CHECKING:
    from pathlib import Path

FULL = BenchmarkError("x: cannot be written (No space left on device).", "Give another place with --output-dir.")
ONLY_PRINTED = "The results exist only in the printed text."


@pytest.mark.parametrize(
    ("code", "expected"),
    [(OK, INVALID), (MISSED, INVALID), (INVALID, INVALID), (INTERRUPTED, INTERRUPTED), (BAD_INPUT, BAD_INPUT)],
)
def test_it_is_invalid_unless_it_is_graver(code: int, expected: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(code, FULL) == expected
    assert capsys.readouterr().err == f"x: cannot be written (No space left on device). {ONLY_PRINTED}\n"
    assert code_of(code, None) == code
    assert capsys.readouterr().err == ""


def test_what_could_not_be_stored_is_as_it_was() -> None:
    def fail() -> NoReturn:
        raise FULL

    assert stored(lambda: "stored", "found") == ("stored", None)
    assert stored(fail, "found") == ("found", FULL)


def test_a_proof(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "proof.json").mkdir()
    found = proof(ran(0.0))
    assert verifying._reported(tmp_path, found, as_json=False) == INVALID
    out, err = capsys.readouterr()
    assert out.startswith(found.headline)
    assert err == f"{tmp_path}: cannot be written (Is a directory). {ONLY_PRINTED}\n"
    assert verifying._reported(tmp_path, found, as_json=True) == INVALID
    assert json.loads(capsys.readouterr().out)["headline"] == found.headline


def test_a_surface(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "surface.json").mkdir()
    found, of = surface_result(), SimpleNamespace(folder=tmp_path, found=[])
    assert surface._reported(found, of, {"json": False}, print) == INVALID  # type: ignore[arg-type]
    out, err = capsys.readouterr()
    assert out.startswith(found.headline)
    assert err.endswith(f"{ONLY_PRINTED}\n")
