"""``benchmark endpoints clean``: undoes what commands left behind that were killed together with their keepers."""

from __future__ import annotations

from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from inference_benchmarker.engine.processes.children import note_asked_for
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.exit_codes import BAD_INPUT, MISSED, OK, worst_exit_code
from inference_benchmarker.system.files import folders_in, kind_of
from server_capacity.provisioning.cleanup_file import NAME, OF_FILE, CleanupFile, HeldError, left_in, read, unknown_in
from server_capacity.provisioning.restoring import outcome_text, restore
from server_capacity.provisioning.undo import Call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from server_capacity.provisioning.cleanup_file import Entry

PATIENCE_S = 10.0
"""Somebody waits, who can try again."""

HELD_S = 0.5
"""So long a process that was killed may hold the file still."""

_UNKNOWN = "the AWS account or URL in which it was created is not known"


def clean(folder: Path, say: Callable[[str], None], patience_s: float = PATIENCE_S) -> int:
    """Undo what is left in a folder's cleanup file, or in those of the folders in it; say each, and give the exit code.

    A file that cannot be trusted is said and left alone.
    """
    codes: list[int] = []
    for each in _folders(folder):
        try:
            entries = read(each)
            if left_in(entries) or unknown_in(entries):
                codes.append(_clean_one(each, say, patience_s))
        except HeldError as error:
            say(str(error))
            codes.append(MISSED)
        except BenchmarkError as error:
            say(str(error))
            codes.append(BAD_INPUT)
    if not codes:
        say(f"Nothing is left to restore in {folder}.")
    return worst_exit_code(OK, *codes)


def _clean_one(folder: Path, say: Callable[[str], None], patience_s: float) -> int:
    with CleanupFile.taken(folder, HELD_S) as cleanup:
        _note_files(cleanup.entries)
        numbers = left_in(cleanup.entries)
        known = [number for number in numbers if not _is_unknown(cleanup.entries[number])]
        for number in set(numbers) - set(known):
            with suppress(OSError):
                cleanup.fail(number, _UNKNOWN)
        done = restore(cleanup, patience_s, busy_s=patience_s, of=known) and known == numbers
        for number in numbers:
            say(f"{folder.name}: {outcome_text(cleanup.entries[number])}")
        unknown = unknown_in(cleanup.entries)
        for number in unknown:
            say(f"{folder.name}: {outcome_text(cleanup.entries[number])} Then delete {folder / NAME}.")
    return OK if done and not unknown else MISSED


def _note_files(entries: Sequence[Entry]) -> None:
    """Hide what the files ask for that created something: why it cannot be removed may quote it."""
    for entry in entries:
        if entry.what.startswith(OF_FILE):
            note_asked_for(Path(entry.what.removeprefix(OF_FILE)))


def _is_unknown(entry: Entry) -> bool:
    """Tells whether nobody knows where it was made: the credentials and the settings of then may not be these."""
    return isinstance(entry.undo, Call) and None in (entry.undo.endpoint_url, entry.account)


def _folders(folder: Path) -> Iterator[Path]:
    """Those with a cleanup file: the folder itself, or the ones in it and in its rankings, the oldest first.

    A link leads to none.
    """
    if kind_of(folder / NAME) is not None:
        yield folder
        return
    inside = folders_in(folder)
    yield from sorted(each for each in (*inside, *chain.from_iterable(map(folders_in, inside))) if kind_of(each / NAME))
