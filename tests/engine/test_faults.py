"""Faults: the quick ones of the table are brought about here, all of them by ``python -m tests.faults``."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from tests.faults.fault import SECRET, Fault, spelled
from tests.faults.table import DOCS, FAULTS, docs

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bench import Bench


@pytest.mark.process
@pytest.mark.parametrize(
    "fault", [pytest.param(each, id=each.name, marks=pytest.mark.slow if each.slow else ()) for each in FAULTS]
)
def test_whatever_happens_the_promises_are_kept(bench: Bench, fault: Fault) -> None:
    fault.run(bench)


def test_every_row_is_another_fault_and_the_quick_ones_are_of_every_kind() -> None:
    assert len({fault.name for fault in FAULTS}) == len({fault.happens for fault in FAULTS}) == len(FAULTS) >= 128
    assert {fault.code for fault in FAULTS} >= {0, 1, 2, 3, 130}


def test_the_docs_tell_of_every_fault() -> None:
    assert DOCS.read_text() == docs(), "python -m tests.faults --docs"


@pytest.mark.parametrize("before", ["", "x", "xx"])
def test_a_secret_is_found_in_every_spelling(tmp_path: Path, before: str) -> None:
    coded = base64.b64encode(f"{before}{SECRET} and more".encode()).decode()
    for number, text in enumerate((SECRET, quote(SECRET, safe=""), quote(SECRET), coded)):
        (tmp_path / str(number)).write_text(f"a text with {text} in it")
    assert {found.partition(":")[0] for found in spelled(tmp_path)} == {"0", "1", "2", "3"}
