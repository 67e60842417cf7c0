"""Conversations of a file that are sent again: the file, and what was found in it. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from inference_benchmarker.words.wording import percent_text, pluralize


@dataclass(frozen=True, slots=True)
class Recorded:
    """Facts of recorded conversations as they were read.

    ``conversations`` were read, with so many ``turns``; ``left_out`` are lines that hold none, and ``first_left_out``
    says where the first stands and why. ``reuse``: the share of their input tokens in blocks that a prompt before had,
    too; None where they have no blocks. ``block_tokens``: the size of those. ``note``: what was done to their times.
    ``turns_sha256``: of all that was read; older plans have none.
    """

    format: str
    size_bytes: int
    conversations: int
    turns: int
    left_out: int = 0
    first_left_out: str = ""
    block_tokens: int = 0
    reuse: float | None = None
    note: str = ""
    turns_sha256: str = ""

    @property
    def found(self) -> str:
        """The words for what was found."""
        count = pluralize(self.conversations, "conversation", "conversations")
        lines = [f"{self.format}, {count} with {pluralize(self.turns, 'turn', 'turns')}"]
        if self.reuse is not None:
            lines.append(f"{percent_text(self.reuse)} of their input tokens repeat blocks of {self.block_tokens:,}")
        if self.note:
            lines.append(self.note)
        return "; ".join(lines)

    @property
    def lacking(self) -> str:
        """The words for what was left out; empty where nothing was."""
        if not self.left_out:
            return ""
        lines = pluralize(self.left_out, "line without a conversation was", "lines without a conversation were")
        return f"{lines} left out, the first is {self.first_left_out}"


@dataclass(frozen=True, slots=True)
class Conversations:
    """The conversations of a file: session n sends the n-th; after the last one, the first follows again.

    ``recorded`` and ``rows`` exist once the file has been read: facts of the file, and the place of the conversations
    until a wave takes them.
    """

    file: Path
    recorded: Recorded | None = None
    rows: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.file, str):
            object.__setattr__(self, "file", Path(self.file))

    def to_json(self) -> dict[str, Any]:
        """A JSON object; the conversations themselves stand in files of their own."""
        return {"file": str(self.file), "recorded": None if self.recorded is None else asdict(self.recorded)}

    @classmethod
    def from_json(cls, data: dict[str, Any] | None) -> Conversations | None:
        """The value that ``to_json`` described, without its rows."""
        if data is None:
            return None
        found = data["recorded"]
        return cls(Path(data["file"]), None if found is None else Recorded(**found))
