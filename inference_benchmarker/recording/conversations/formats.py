"""The formats of recorded conversations: what a file is, and the turns that its rows are or have.

A turn as it is kept is a dict with some of these: ``messages`` that it adds, or ``blocks`` (numbers of blocks that
prompts share, each ``block_tokens`` of its conversation long) and the ``tokens`` of its prompt; ``keep``: of the prompt
before it, so many messages or blocks are its beginning, and all where it is not there; ``out``: the tokens of its
answer; ``answer``: that answer as a message; ``think_s``: the seconds from the answer before it until it is sent.
"""

from __future__ import annotations

import csv
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from inference_benchmarker.recording.clock import plain_name
from inference_benchmarker.recording.conversations.csv_traces import CSV, CsvTrace
from inference_benchmarker.recording.conversations.objects import JsonRow, beginning, lines_of, objects_of
from inference_benchmarker.recording.conversations.turns import (
    ConversationRow,
    hash_blocks_of,
    instant_of,
    list_of,
    message_of,
    messages_of,
    seconds_of,
    some_of,
    tokens_of,
    turns_of,
)
from inference_benchmarker.recording.source import cells_of
from inference_benchmarker.words.redact import excerpt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from inference_benchmarker.recording.conversations.left_out import LeftOut

LEAST_BLOCK, MOST_BLOCK = 16, 1 << 12
_BLOCKS = (512, 16, 64, 128, 256, 32, 1024)
"""The sizes of blocks that traces have, Mooncake's first: the first of them that fits a prompt is its file's."""
_MOST_BEFORE = 1000  # rows of another shape before the first conversation
_MOONCAKE = {"input_length", "hash_ids", "text_input", "session_id"}


class Format(NamedTuple):
    """A way in which conversations are written down, and the ``rows`` of a file that is; they come but once.

    ``unit``: of its times, where it has one. ``is_grouped``: the turns of a conversation are rows, not one row's.
    """

    name: str
    rows: Iterator[ConversationRow]
    unit: str = ""
    is_grouped: bool = False


def format_of(file: IO[str], left_out: LeftOut) -> Format | None:
    """The format of a file, by its first row that has one; None where it has none of a conversation's."""
    begun = beginning(file)
    if begun.lstrip().startswith(("{", "[")):
        return _of_objects(objects_of(file, left_out, begun), left_out)
    return _of_csv(lines_of(file, left_out, begun), left_out)


def _of_objects(objects: Iterator[JsonRow], left_out: LeftOut) -> Format | None:
    for first in islice(objects, _MOST_BEFORE):
        rows, (line, value, _) = chain([first], objects), first
        if "conversations" in value or "conversation" in value:
            return Format("ShareGPT", _read(rows, _share_gpt, left_out))
        if isinstance(value.get("requests"), list):
            return Format("agent traces", _read(rows, _agent, left_out), "s")
        if "messages" in value and "session_id" not in value:
            return Format("OpenAI messages", _read(rows, _open_ai, left_out))
        if _MOONCAKE & value.keys():
            reader = _Mooncake(_block_of(value.get("input_length"), value.get("hash_ids")))
            return Format("Mooncake's trace", _read(rows, reader.read, left_out), "ms", "session_id" in value)
        left_out.add(line, f"has the keys {excerpt(', '.join(map(str, value)), 60)}, which no conversation has")
    return None


def _of_csv(lines: Iterator[tuple[int, str]], left_out: LeftOut) -> Format | None:
    first = next(lines, None)
    if first is None:
        return None
    names = [plain_name(name) for name in next(cells_of([first[1]], max(",;\t|", key=first[1].count)))]
    columns = next((each for each in CSV if each.needed <= set(names)), None)
    if columns is None:
        return None
    grouped = columns.session in names
    table = (JsonRow(line, text, len(text)) for line, text in lines)
    rows = _read(table, CsvTrace(columns, names, max(",;\t|", key=first[1].count), grouped).read, left_out)
    return Format(columns.name, rows, columns.unit, grouped)


def _read(
    rows: Iterator[JsonRow], reader: Callable[[int, Any], ConversationRow], left_out: LeftOut
) -> Iterator[ConversationRow]:
    for line, value, held in rows:
        try:
            found = reader(line, value)
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError, csv.Error) as error:
            left_out.add(line, f"has no {error.args[0]}" if isinstance(error, KeyError) else str(error))
        else:
            left_out.good()
            yield found._replace(held=held)


def _share_gpt(line: int, value: dict[str, Any]) -> ConversationRow:
    spoken = list_of(value.get("conversations") or value["conversation"])
    return ConversationRow(line, instant_of(value), turns_of([message_of(each) for each in spoken]))


def _open_ai(line: int, value: dict[str, Any]) -> ConversationRow:
    about = {"tools": value["tools"]} if isinstance(value.get("tools"), list) else {}
    return ConversationRow(line, instant_of(value), turns_of(messages_of(value)), about=about)


def _agent(line: int, value: dict[str, Any]) -> ConversationRow:
    """An agent's conversation: its requests with blocks of their own, unless the file says that all share them.

    Those of its subagents are left out: they are conversations of their own, beside it.
    """
    size = value.get("block_size", 64)
    if not isinstance(size, int) or not LEAST_BLOCK <= size <= MOST_BLOCK:
        raise ValueError(f"block_size is {size!r}")
    turns: list[dict[str, Any]] = []
    before: dict[str, Any] | None = None
    for request in (each for each in value["requests"] if "in" in each):
        turn = {"tokens": tokens_of(request["in"]), "out": tokens_of(request["out"]), "blocks": hash_blocks_of(request)}
        if before is not None:
            turn["think_s"] = _think_s(request, before)
        turns.append(turn)
        before = request
    about = {"block_tokens": size, "own_blocks": value.get("hash_id_scope", "local") != "global"}
    return ConversationRow(line, instant_of(value), some_of(turns), about=about)


def _think_s(request: dict[str, Any], before: dict[str, Any]) -> float:
    """The time between an answer and the next request: as recorded, else what is left of the time between requests."""
    think = request.get("think_time")
    gap = think if think is not None else float(request["t"]) - float(before["t"]) - float(before.get("api_time") or 0)
    return seconds_of(max(0.0, float(gap)))


class _Mooncake:
    """Rows of Mooncake's trace, with blocks of ``block_tokens``: a request each, or the turn of a session."""

    def __init__(self, block_tokens: int) -> None:
        self._block_tokens = block_tokens

    def read(self, line: int, value: dict[str, Any]) -> ConversationRow:
        """The turn of a row."""
        turn: dict[str, Any] = {}
        if "output_length" in value:
            turn["out"] = max(1, tokens_of(value["output_length"], least=0))
        if "messages" in value:
            turn |= {"messages": messages_of(value), "keep": 0}
        elif "text_input" in value:
            turn["messages"] = [{"role": "user", "content": str(value["text_input"])}]
        else:
            turn["tokens"] = tokens_of(value["input_length"])
            turn["blocks"] = hash_blocks_of(value)
        if value.get("delay") is not None:
            turn["think_s"] = seconds_of(float(value["delay"]) / 1000)
        key = value.get("session_id")
        about = {"block_tokens": self._block_tokens, "adds": True}
        return ConversationRow(line, value.get("timestamp"), [turn], None if key is None else str(key), about=about)


def _block_of(tokens: Any, ids: Any) -> int:
    """The size of a trace's blocks, by its first row."""
    if isinstance(tokens, int) and isinstance(ids, list) and ids:
        return next((size for size in _BLOCKS if -(-tokens // size) == len(ids) or tokens // size == len(ids)), 512)
    return 512
