"""Turns that stand in rows of their own, put together: on disk, so that memory does not grow with the file."""

from __future__ import annotations

import json
import shutil
import sqlite3
from array import array
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.recording.conversations.objects import MOST_HELD, held_by
from inference_benchmarker.records.record import MOST_TURN
from inference_benchmarker.system.progress import tell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from inference_benchmarker.recording.conversations.left_out import LeftOut

_FILE = "grouping.db"
_PAGE = 4096
_MOST_OF_DISK = 0.5
_CACHE_KIB = 32 << 10
_PUTTING = "Putting its sessions together"
_REPORT_EACH = 1000
_BLOCK_HELD = 44  # bytes of a block's number in memory, about, as ``held_by`` takes them


class Piece(NamedTuple):
    """A turn of the conversation ``key``, sent at ``at`` ns, where that is known, and answered after ``took_ns``."""

    key: str | None
    line: int
    at: int | None
    took_ns: int
    turn: dict[str, Any]


def grouped(pieces: Iterable[Piece], folder: Path, left_out: LeftOut) -> Iterator[list[Piece]]:
    """The turns of each conversation, the conversations by their first instant, or as they began in the file.

    A turn without a key is a conversation of its own. A conversation that is too large for memory is left out.
    BenchmarkError where they take more than half of the free space.
    """
    file = folder / _FILE
    with closing(sqlite3.connect(file, isolation_level=None)) as base:
        base.execute(f"PRAGMA max_page_count = {int(_MOST_OF_DISK * shutil.disk_usage(folder).free) // _PAGE}")
        for pragma in ("synchronous = OFF", f"cache_size = -{_CACHE_KIB}"):
            base.execute(f"PRAGMA {pragma}")
        try:
            _write(base, pieces)
            yield from _read(base, left_out)
        except sqlite3.Error as error:
            raise BenchmarkError(
                f"{folder.parent}: its turns could not be put together ({error}).",
                "Send a part of the file, or give another --output-dir.",
            ) from None
        finally:
            with suppress(OSError):
                file.unlink()


def _write(base: sqlite3.Connection, pieces: Iterable[Piece]) -> None:
    base.execute(
        "CREATE TABLE piece (key TEXT, line INTEGER, at INTEGER, took INTEGER, turn TEXT, blocks BLOB, held INTEGER)"
    )
    base.execute("BEGIN")
    base.executemany("INSERT INTO piece VALUES (?, ?, ?, ?, ?, ?, ?)", map(_row, pieces))
    base.execute("COMMIT")
    base.execute("CREATE INDEX by_key ON piece (key, line)")
    base.execute(
        "CREATE TABLE talk AS SELECT key, MIN(at) AS at, MIN(line) AS line, SUM(held) AS held FROM piece GROUP BY key"
    )


def _row(piece: Piece) -> tuple[Any, ...]:
    blocks = _packed(piece.turn.get("blocks"))
    turn = json.dumps(piece.turn if blocks is None else {**piece.turn, "blocks": None})
    held = held_by(turn) + (0 if blocks is None else _BLOCK_HELD * len(piece.turn["blocks"]))
    return piece.key if piece.key is not None else f"\0{piece.line}", *piece[1:4], turn, blocks, held


def _packed(blocks: list[int] | None) -> bytes | None:
    """The numbers of blocks as bytes, in a tenth of the time of JSON; None where they are none, or too large."""
    try:
        return None if blocks is None else array("q", blocks).tobytes()
    except OverflowError:
        return None


def _turn(text: str, blocks: bytes | None) -> dict[str, Any]:
    turn: dict[str, Any] = json.loads(text)
    if blocks is not None:
        turn["blocks"] = array("q", blocks).tolist()
    return turn


def _read(base: sqlite3.Connection, left_out: LeftOut) -> Iterator[list[Piece]]:
    (of,) = base.execute("SELECT COUNT(*) FROM talk").fetchone()
    for done, (key, line, held) in enumerate(base.execute("SELECT key, line, held FROM talk ORDER BY at, line")):
        if not done % _REPORT_EACH:
            tell(_PUTTING, done, of)
        if held > MOST_HELD:
            left_out.add(line, f"its session would take more than {MOST_HELD >> 20} MiB of memory")
            continue
        rows = base.execute(
            "SELECT line, at, took, turn, blocks FROM piece WHERE key = ? ORDER BY line LIMIT ?", (key, MOST_TURN)
        )
        pieces = [Piece(key, line, at, took, _turn(turn, blocks)) for line, at, took, turn, blocks in rows]
        if all(piece.at is not None for piece in pieces):
            pieces.sort(key=lambda piece: (piece.at or 0, piece.line))
        yield pieces
    tell(_PUTTING, of, of)
