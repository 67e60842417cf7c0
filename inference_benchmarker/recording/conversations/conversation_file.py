"""A file of conversations as it is read, in pieces: its conversations as rows, and facts of what went by."""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.recorded import Recorded
from inference_benchmarker.recording.clock import Clock, clock_of
from inference_benchmarker.recording.conversations.formats import format_of
from inference_benchmarker.recording.conversations.grouping import Piece, grouped
from inference_benchmarker.recording.conversations.left_out import LeftOut
from inference_benchmarker.recording.conversations.reuse import Reuse
from inference_benchmarker.recording.formats import opened_text
from inference_benchmarker.recording.order import FARTHEST_NS
from inference_benchmarker.recording.source import JSON, MOST_LINE, Lines, Source, blocks_of
from inference_benchmarker.words.redact import quoted
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from inference_benchmarker.recording.conversations.formats import Format
    from inference_benchmarker.recording.conversations.turns import ConversationRow

_LOOKED_AT = 100  # rows from which the unit of times is learned
_LOOKED_AT_BYTES = 1 << 23  # that they take in memory, about: the row that reaches it is the last of them
_EXPECTED = "ShareGPT (JSON), OpenAI messages, Mooncake traces or agent traces (JSON lines), BurstGPT or Azure (CSV)"
_MOST_KEPT = 2 * MOST_LINE  # characters of a conversation as workers read it: its line, and what its turns add to it
_NO_CLOCK = Clock("no instants", "", 0, int)


class _Talk(NamedTuple):
    """A conversation whose turns are all there."""

    line: int
    at: int | None
    turns: list[dict[str, Any]]
    key: str | None
    about: dict[str, Any]


class ConversationFile:
    """A file of conversations as it is read: a source of rows, and facts of what went by.

    With ``timed`` a conversation that does not say when it began is left out. ``folder`` is for what memory need not
    hold.
    """

    def __init__(self, path: Path, folder: Path, *, timed: bool) -> None:
        self._path, self._folder, self._timed = path, folder, timed
        self._left_out, self._reuse = LeftOut(), Reuse()
        self._clock = _NO_CLOCK
        self._format = ""
        self._note = ""
        self._block_tokens = self._conversations = self._turns = 0
        self._digest = hashlib.sha256()

    @contextmanager
    def opened(self, most: int | None = None) -> Iterator[Source]:
        """Open it as a recording whose rows are conversations, ``most`` of them; BenchmarkError where it has none."""
        with opened_text(self._path) as text:
            found = format_of(text, self._left_out)
            if found is None:
                raise self._nothing()
            rows = islice(self._rows(found), most)
            first = next(rows, None)
            if first is None:
                raise self._nothing()
            lines = Lines(found.name, ("at", ""), chain([first], rows), JSON)
            clock = Clock(self._clock.unit, self._clock.zone, self._clock.spread_ns, int)
            yield Source(self._path, found.name, "timestamp", JSON, clock, blocks_of(lines, 0))

    def facts(self) -> Recorded:
        """The facts of what was read by now."""
        return Recorded(
            format=self._format,
            size_bytes=self._path.stat().st_size,
            conversations=self._conversations,
            turns=self._turns,
            left_out=self._left_out.count,
            first_left_out=self._left_out.first,
            block_tokens=self._block_tokens,
            reuse=self._reuse.share,
            note=self._note,
            turns_sha256=self._digest.hexdigest(),
        )

    def _nothing(self) -> BenchmarkError:
        text = f" ({self._left_out.text})" if self._left_out.count else ""
        return BenchmarkError(f"{self._path}: holds no conversation{text}.", f"Expected {_EXPECTED}.")

    def _rows(self, found: Format) -> Iterator[tuple[int, list[Any]]]:
        """The conversations as rows: the instant of each, and its JSON."""
        self._format = found.name
        rows = self._with_clock(found)
        talks = self._grouped(rows) if found.is_grouped else self._single(rows)
        for number, talk in enumerate(talks):
            turns = self._encoded(talk, number)
            kept = {"id": talk.key or str(number), "number": number, "turns": turns}
            if self._block_tokens:
                kept["block_tokens"] = talk.about["block_tokens"]
            kept |= {name: value for name, value in talk.about.items() if name in ("own_blocks", "tools")}
            text = json.dumps(kept, ensure_ascii=False)
            if len(text) > _MOST_KEPT:
                self._left_out.add(talk.line, f"its turns add more than {_MOST_KEPT:,} characters")
                continue
            self._conversations += 1
            self._turns += len(turns)
            self._digest.update(text.encode("utf-8", "surrogatepass"))
            yield talk.line, [talk.at or 0, text]

    def _with_clock(self, found: Format) -> Iterator[ConversationRow]:
        """All rows; the clock is learned from the first ones, which are held meanwhile."""
        begun = list(_begun(found.rows))
        self._learn_clock(found, begun)
        return chain(begun, found.rows)

    def _learn_clock(self, found: Format, begun: list[ConversationRow]) -> None:
        stamps = [row.at for row in begun if row.at not in (None, "")]
        try:
            if stamps:
                self._clock = clock_of("timestamp", stamps, found.unit)
        except ValueError:
            pass  # what stands there are no times
        if self._timed and self._clock is _NO_CLOCK:
            raise BenchmarkError(
                f"--replay {self._path}: its conversations do not say when they began.",
                f"Give a rate of your own: --conversations {self._path} --client-rps R.",
            )

    def _instant(self, row: ConversationRow) -> int | None:
        """When a row was sent; ValueError for what is no time."""
        if row.at in (None, "") or self._clock is _NO_CLOCK:
            return None
        try:
            at = self._clock.read(row.at)
        except (ValueError, TypeError, OverflowError):
            at = FARTHEST_NS
        if abs(at) >= FARTHEST_NS:
            raise ValueError(f"{quoted(str(row.at), 30)} is not a time")
        return at

    def _with_instants(self, rows: Iterable[ConversationRow]) -> Iterator[tuple[ConversationRow, int | None]]:
        """The rows with their instants; those that have no time for theirs are left out."""
        for row in rows:
            try:
                at = self._instant(row)
            except ValueError as error:
                self._left_out.add(row.line, str(error))
            else:
                yield row, at

    def _single(self, rows: Iterable[ConversationRow]) -> Iterator[_Talk]:
        for row, at in self._with_instants(rows):
            if self._is_dated(at, row.line):
                yield _Talk(row.line, at, row.turns, row.key, row.about)

    def _grouped(self, rows: Iterable[ConversationRow]) -> Iterator[_Talk]:
        about: dict[str, Any] = {}

        def pieces() -> Iterator[Piece]:
            for row, at in self._with_instants(rows):
                about.update(row.about)
                yield Piece(row.key, row.line, at, row.took_ns, row.turns[0])

        for parts in grouped(pieces(), self._folder, self._left_out):
            first = parts[0]
            if len({"blocks" in piece.turn for piece in parts}) > 1:
                self._left_out.add(first.line, "some turns of its session are texts, and others are lengths")
            elif self._is_dated(first.at, first.line):
                key = None if first.key is None or first.key.startswith("\0") else first.key
                yield _Talk(first.line, first.at, self._thought(parts), key, about)

    def _is_dated(self, at: int | None, line: int) -> bool:
        if at is None and self._timed:
            self._left_out.add(line, "does not say when it began")
        return at is not None or not self._timed

    def _thought(self, parts: list[Piece]) -> list[dict[str, Any]]:
        """The turns, each with the time thought before it: as recorded, else what instants leave of it."""
        for before, piece in pairwise(parts):
            if "think_s" not in piece.turn and piece.at is not None and before.at is not None:
                piece.turn["think_s"] = max(0, piece.at - before.at - before.took_ns) / NS
                if not before.took_ns:
                    self._note = "its think times are those between requests: nobody recorded how long answers took"
        return [piece.turn for piece in parts]

    def _encoded(self, talk: _Talk, number: int) -> list[dict[str, Any]]:
        """The turns of a conversation with what each adds, and how much of the prompt before it keeps."""
        own = number if talk.about.get("own_blocks") else -1
        before: dict[str, Any] | None = None
        turns: list[dict[str, Any]] = []
        for turn in talk.turns:
            kept = dict(turn)
            if "blocks" in turn:
                self._encode_prompt(kept, turn, before, talk, own, counts=bool(turns) and "keep" in turns[-1])
            elif "keep" in turn:
                kept["keep"] = _same(turn["messages"], [] if before is None else before["messages"])
                kept["messages"] = turn["messages"][kept["keep"] :]
            turns.append(kept)
            before = turn
        return turns

    def _encode_prompt(
        self,
        kept: dict[str, Any],
        turn: dict[str, Any],
        before: dict[str, Any] | None,
        talk: _Talk,
        own: int,
        *,
        counts: bool,
    ) -> None:
        """A prompt of blocks: all of it, where it begins as the one before, else what its turn adds to that.

        ``counts``: the blocks of the one before were counted.
        """
        blocks = turn["blocks"]
        if blocks:
            self._block_tokens = talk.about["block_tokens"]
        adds = before is not None and talk.about.get("adds") and before["blocks"][:1] != blocks[:1]
        if before is None or not (adds or talk.about.get("totals")):
            kept["keep"] = 0 if before is None else _same(blocks, before["blocks"])
            kept["blocks"] = blocks[kept["keep"] :]
            if self._block_tokens:
                self._reuse.add(own, blocks, self._block_tokens, turn["tokens"], kept["keep"] if counts else 0)
        elif not adds:
            kept["tokens"] = max(1, turn["tokens"] - before["tokens"] - before["out"])


def _begun(rows: Iterator[ConversationRow]) -> Iterator[ConversationRow]:
    held = 0
    for row in islice(rows, _LOOKED_AT):
        yield row
        held += row.held
        if held >= _LOOKED_AT_BYTES:
            return


def _same(these: list[Any], those: list[Any]) -> int:
    """The number of items that both lists begin with."""
    if these[: len(those)] == those:  # the usual way: a turn goes on with the one before
        return len(those)
    pairs = enumerate(zip(these, those, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(these), len(those)))
