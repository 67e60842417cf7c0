"""Reads a file of conversations once, in pieces, into rows that workers find by number."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.recorded import Conversations, Recorded
from inference_benchmarker.recording.conversations.conversation_file import ConversationFile
from inference_benchmarker.recording.conversations.formats import format_of
from inference_benchmarker.recording.conversations.left_out import LeftOut
from inference_benchmarker.recording.conversations.reuse import Reuse
from inference_benchmarker.recording.folder import Rows, in_a_folder
from inference_benchmarker.recording.formats import opened_text
from inference_benchmarker.recording.reading import KeptRows, read
from inference_benchmarker.recording.rows import RowFile
from inference_benchmarker.recording.schedule import RecordedSchedule
from inference_benchmarker.recording.source import JSON, Source

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from inference_benchmarker.plan.replay import Replay


def read_conversations(conversations: Conversations, most: int | None, parent: Path) -> Conversations:
    """The same with their file read: facts of it, and its rows in a folder below ``parent``; ``most`` of them.

    BenchmarkError for a file that has none, or whose rows take more than half of the free space.
    """

    def written(folder: Path) -> Recorded:
        file = ConversationFile(conversations.file, folder, timed=False)
        with file.opened(most) as source, KeptRows(folder, JSON) as kept:
            for block in source.blocks:
                place = kept.keep(block, wanted=True)
                kept.add(np.zeros(0, np.int64), np.arange(place, place + len(block.lines)))
        return file.facts()

    facts, rows = in_a_folder(parent, written)
    return Conversations(conversations.file, facts, rows)


def replayed(
    conversations: Conversations, replay: Replay, seed: int, most: int | None, parent: Path
) -> tuple[Conversations, Replay]:
    """The same with their file read, which is the replay's: each conversation is due when it began there.

    For ``seed``, ``most`` and errors see ``recording.reading.read``.
    """
    files: list[ConversationFile] = []

    def opened(folder: Path) -> AbstractContextManager[Source]:
        files.append(ConversationFile(replay.file, folder, timed=True))
        return files[0].opened()

    read_one = read(replay, seed, most, parent, opened)
    return Conversations(conversations.file, _of_part(files[0].facts(), read_one)), read_one


def _of_part(facts: Recorded, replay: Replay) -> Recorded:
    """The facts of the conversations that a replay sends; more of its file may have been read."""
    assert replay.recording is not None
    number = replay.recording.rows
    if number == facts.conversations:
        return facts
    assert isinstance(replay.schedule, RecordedSchedule)
    assert replay.schedule.kept is not None
    turns, reuse = 0, Reuse()
    with closing(RowFile(replay.schedule.kept.folder)) as kept:
        for row in map(kept.row, range(number)):
            turns += len(row["turns"])
            _add_prompts(reuse, row)
    return replace(facts, conversations=number, turns=turns, reuse=reuse.share)


def _add_prompts(reuse: Reuse, row: dict[str, Any]) -> None:
    """Count the prompts of a conversation as it is kept, those of which all blocks are known."""
    own = row["number"] if row.get("own_blocks") else -1
    blocks: list[int] = []
    counted = False
    for turn in row["turns"]:
        if "blocks" in turn:
            keep = turn.get("keep", 0)
            blocks = blocks[:keep] + turn["blocks"]
            kept, counted = keep if counted else 0, "keep" in turn and "block_tokens" in row
            if counted:
                reuse.add(own, blocks, row["block_tokens"], turn["tokens"], kept)


def are_in(path: Path) -> bool:
    """Tells whether a file seems to have conversations; of one that cannot be read, no."""
    try:
        with opened_text(path) as text:
            return format_of(text, LeftOut()) is not None
    except BenchmarkError:
        return False


def are_read(conversations: Conversations) -> bool:
    """Tells whether their file has been read and its rows are still there."""
    return isinstance(conversations.rows, Rows) and conversations.rows.are_there
