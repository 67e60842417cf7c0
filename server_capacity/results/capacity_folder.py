"""The folder of a search: ``capacity.json``, its text, and the run directories of its waves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from inference_benchmarker.exit_codes import INVALID, OK, worst_exit_code
from inference_benchmarker.system.files import folders_in
from server_capacity.results.codec import check_capacity
from server_capacity.results.stored import Stored
from server_capacity.results.text.capacity import to_text
from server_capacity.results.text.headline import headline
from server_capacity.results.types.result_status import UNSAVED, is_unsaved
from server_capacity.results.waves_below import require_waves

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from server_capacity.results.types.capacity import CapacityResult

FILE = "capacity.json"


def _decoded(data: dict[str, Any]) -> CapacityResult:
    """The result with the first line that follows from the rest of it, whatever is stored as that."""
    return _with_headline(check_capacity(data))


def _with_headline(found: CapacityResult) -> CapacityResult:
    return replace(found, headline=headline(found))


def _built_on(folder: Path, found: CapacityResult) -> Iterator[Path]:
    """The folders in it; and where waves of earlier tiers are among its evidence, those in the folders beside it."""
    yield from folder.iterdir()
    shared = (found.waves or {}).get("shared", ())
    for tier in folders_in(folder / "..") if shared else ():
        yield from (tier / name for name in shared if tier.name != folder.name)


_STORED = Stored(FILE, "capacity.txt", to_text, _decoded, require_waves, _built_on)
load, read, is_capacity = _STORED.load, _STORED.read, _STORED.is_in


def save(folder: Path, found: CapacityResult) -> CapacityResult:
    """Write capacity.json and capacity.txt, and give the result with its digest.

    Where they cannot be written, that joins the ``failures`` of the answer until they can: what was measured for
    minutes is shown whatever the disk does.
    """
    others = [each for each in found.failures or [] if not each.endswith(UNSAVED)]
    found = _with_headline(replace(found, failures=others or (found.failures and [])))
    try:
        return _STORED.write(folder, found)
    except OSError as error:
        reason = error.strerror or str(error)
        unsaved = f"{folder}: cannot be written ({reason}). {UNSAVED}"
        return _with_headline(replace(found, failures=[*others, unsaved]))


def exit_code_of(found: CapacityResult) -> int:
    """The exit code of the command that searched: INVALID where the answer could not be stored, unless it is graver."""
    return worst_exit_code(found.exit_code, INVALID if is_unsaved(found) else OK)
