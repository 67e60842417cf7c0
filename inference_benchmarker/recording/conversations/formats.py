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
from inference_benchmarker.recording.conversations.objects import Row, beginning, lines_of, objects_of
from inference_benchmarker.recording.source import TIME_NAMES
from inference_benchmarker.records.record import MOST_TURN
from inference_benchmarker.words.redact import excerpt, quoted
from inference_benchmarker.words.units import MAX_SECONDS, NS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from inference_benchmarker.recording.conversations.left_out import LeftOut

MOST_TOKENS = 10_000_000  # of a prompt or an answer: no model takes more
LEAST_BLOCK, MOST_BLOCK = 16, 1 << 12
_BLOCKS = (512, 16, 64, 128, 256, 32, 1024)
"""The sizes of blocks that traces have, Mooncake's first: the first of them that fits a prompt is its file's."""
_CHARACTERS_A_TOKEN = 4  # of English text, roughly: it only bounds an answer whose length nobody recorded in tokens
_MOST_BEFORE = 1000  # rows of another shape before the first conversation
_USERS = ("human", "user", "system", "tool", "developer")
_AZURE = ("timestamp", "contexttokens", "generatedtokens")
_MOONCAKE = {"input_length", "hash_ids", "text_input", "session_id"}
_ANSWERS = ("gpt", "chatgpt", "assistant", "bot", "model", "bard", "bing")


class Found(NamedTuple):
    """A conversation, or one turn of the conversation that is called ``key``, as its row has it.

    ``at``: when it was sent, as it stands there; None where nothing says so. ``took_ns``: until its answer was whole.
    ``held``: the bytes that the row takes in memory, about.
    """

    line: int
    at: Any
    turns: list[dict[str, Any]]
    key: str | None = None
    took_ns: int = 0
    about: dict[str, Any] = {}  # noqa: RUF012 - never changed: what is kept beside the turns
    held: int = 0


class Format(NamedTuple):
    """A way in which conversations are written down, and the ``rows`` of a file that is; they come but once.

    ``unit``: of its times, where it has one. ``is_grouped``: the turns of a conversation are rows, not one row's.
    """

    name: str
    rows: Iterator[Found]
    unit: str = ""
    is_grouped: bool = False


def format_of(file: IO[str], left_out: LeftOut) -> Format | None:
    """The format of a file, by its first row that has one; None where it has none of a conversation's."""
    begun = beginning(file)
    if begun.lstrip().startswith(("{", "[")):
        return _of_objects(objects_of(file, left_out, begun), left_out)
    return _of_csv(lines_of(file, left_out, begun), left_out)


def _of_objects(objects: Iterator[Row], left_out: LeftOut) -> Format | None:
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
    names = [plain_name(name) for name in next(csv.reader([first[1]], delimiter=max(",;\t|", key=first[1].count)))]
    columns = next((each for each in _CSV if each.needed <= set(names)), None)
    if columns is None:
        return None
    grouped = columns.session in names
    table = (Row(line, text, len(text)) for line, text in lines)
    rows = _read(table, _Csv(columns, names, max(",;\t|", key=first[1].count), grouped).read, left_out)
    return Format(columns.name, rows, columns.unit, grouped)


def _read(rows: Iterator[Row], reader: Callable[[int, Any], Found], left_out: LeftOut) -> Iterator[Found]:
    for line, value, held in rows:
        try:
            found = reader(line, value)
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError, csv.Error) as error:
            left_out.add(line, f"has no {error.args[0]}" if isinstance(error, KeyError) else str(error))
        else:
            left_out.good()
            yield found._replace(held=held)


def _share_gpt(line: int, value: dict[str, Any]) -> Found:
    spoken = _list(value.get("conversations") or value["conversation"])
    return Found(line, _instant(value), _turns_of([_message(each) for each in spoken]))


def _message(said: dict[str, Any]) -> dict[str, Any]:
    """A message as OpenAI's API has it, of what somebody said in ShareGPT's way."""
    who, text = str(said.get("from") or said["role"]), said.get("value", said.get("content"))
    role = "assistant" if who in _ANSWERS else who if who in _USERS else None
    if role is None:
        raise ValueError(f"somebody is called {quoted(who, 30)}, neither a user nor a model")
    if not isinstance(text, str):
        raise ValueError("what somebody said is no text")
    return {"role": "user" if role == "human" else role, "content": text}


def _open_ai(line: int, value: dict[str, Any]) -> Found:
    about = {"tools": value["tools"]} if isinstance(value.get("tools"), list) else {}
    return Found(line, _instant(value), _turns_of(_messages(value)), about=about)


def _messages(value: dict[str, Any]) -> list[dict[str, Any]]:
    messages = _list(value["messages"])
    if not all(isinstance(each, dict) and isinstance(each.get("role"), str) for each in messages):
        raise ValueError("a message has no role")
    return messages


def _turns_of(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The turns of a conversation: each adds messages and has an answer, the last one perhaps none."""
    turns: list[dict[str, Any]] = []
    added: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] != "assistant":
            added.append(message)
        elif added:
            turns.append({"messages": added, "answer": message, "out": _length(message)})
            added = []
        else:
            raise ValueError("an answer follows no question")
    if any(each["role"] in ("user", "tool", "function") for each in added):
        turns.append({"messages": added})
    return _some(turns)


def _length(message: dict[str, Any]) -> int:
    """The tokens of an answer, about: nobody recorded them."""
    content = message.get("content")
    text = content if isinstance(content, str) else str(content or message.get("tool_calls") or "")
    return max(1, -(-len(text) // _CHARACTERS_A_TOKEN))


def _agent(line: int, value: dict[str, Any]) -> Found:
    """An agent's conversation: its requests with blocks of their own, unless the file says that all share them.

    Those of its subagents are left out: they are conversations of their own, beside it.
    """
    size = value.get("block_size", 64)
    if not isinstance(size, int) or not LEAST_BLOCK <= size <= MOST_BLOCK:
        raise ValueError(f"block_size is {size!r}")
    turns: list[dict[str, Any]] = []
    before: dict[str, Any] | None = None
    for request in (each for each in value["requests"] if "in" in each):
        turn = {"tokens": _tokens(request["in"]), "out": _tokens(request["out"]), "blocks": _blocks(request)}
        if before is not None:
            turn["think_s"] = _think_s(request, before)
        turns.append(turn)
        before = request
    about = {"block_tokens": size, "own_blocks": value.get("hash_id_scope", "local") != "global"}
    return Found(line, _instant(value), _some(turns), about=about)


def _think_s(request: dict[str, Any], before: dict[str, Any]) -> float:
    """The time between an answer and the next request: as recorded, else what is left of the time between requests."""
    told = request.get("think_time")
    gap = told if told is not None else float(request["t"]) - float(before["t"]) - float(before.get("api_time") or 0)
    return _seconds(max(0.0, float(gap)))


class _Mooncake:
    """Rows of Mooncake's trace, with blocks of ``block_tokens``: a request each, or the turn of a session."""

    def __init__(self, block_tokens: int) -> None:
        self._block_tokens = block_tokens

    def read(self, line: int, value: dict[str, Any]) -> Found:
        """The turn of a row."""
        turn: dict[str, Any] = {}
        if "output_length" in value:
            turn["out"] = max(1, _tokens(value["output_length"], least=0))
        if "messages" in value:
            turn |= {"messages": _messages(value), "keep": 0}
        elif "text_input" in value:
            turn["messages"] = [{"role": "user", "content": str(value["text_input"])}]
        else:
            turn["tokens"] = _tokens(value["input_length"])
            turn["blocks"] = _blocks(value)
        if value.get("delay") is not None:
            turn["think_s"] = _seconds(float(value["delay"]) / 1000)
        key = value.get("session_id")
        about = {"block_tokens": self._block_tokens, "adds": True}
        return Found(line, value.get("timestamp"), [turn], None if key is None else str(key), about=about)


def _block_of(tokens: Any, ids: Any) -> int:
    """The size of a trace's blocks, by its first row."""
    if isinstance(tokens, int) and isinstance(ids, list) and ids:
        return next((size for size in _BLOCKS if -(-tokens // size) == len(ids) or tokens // size == len(ids)), 512)
    return 512


class _Columns(NamedTuple):
    """The columns of a table of requests; ``took`` and ``session`` need not be there."""

    name: str
    needed: frozenset[str]
    at: str
    tokens: str
    out: str
    unit: str = ""
    took: str = ""
    session: str = ""


_BURST = ("timestamp", "request_tokens", "response_tokens")
_CSV = (
    _Columns("BurstGPT", frozenset(_BURST), *_BURST, unit="s", took="elapsed_time", session="session_id"),
    _Columns("Azure's LLM trace", frozenset(_AZURE), *_AZURE),
)


class _Csv:
    """Rows of a table of requests, which say how many tokens each prompt had in all."""

    def __init__(self, columns: _Columns, names: Sequence[str], delimiter: str, grouped: bool) -> None:
        self._columns, self._delimiter, self._width = columns, delimiter, len(names)
        told = {"at": columns.at, "tokens": columns.tokens, "out": columns.out, "took": columns.took}
        told |= {"session": columns.session} if grouped else {}
        self._place = {field: names.index(name) for field, name in told.items() if name in names}

    def read(self, line: int, text: str) -> Found:
        """The turn of a row."""
        row = next(csv.reader([text], delimiter=self._delimiter))
        if len(row) != self._width:
            raise ValueError(f"has {len(row)} values, and the header names {self._width}")
        told = {field: row[place].strip() for field, place in self._place.items()}
        turn = {"tokens": _tokens(int(told["tokens"])), "out": _tokens(int(told["out"])), "blocks": []}
        took_ns = int(_seconds(float(told.get("took") or 0)) * NS)
        return Found(line, told["at"], [turn], told.get("session") or None, took_ns, {"totals": True})


def _blocks(value: dict[str, Any]) -> list[int]:
    ids = value.get("hash_ids")
    if ids is None:
        return []
    if not isinstance(ids, list) or not all(type(each) is int for each in ids):
        raise ValueError("hash_ids are no whole numbers")
    return ids


def _tokens(count: Any, least: int = 1) -> int:
    if type(count) is not int or not least <= count <= MOST_TOKENS:
        raise ValueError(f"{excerpt(str(count), 30)} is no number of tokens")
    return count


def _seconds(seconds: float) -> float:
    if not 0 <= seconds <= MAX_SECONDS:
        raise ValueError(f"{seconds} is no time in seconds")
    return seconds


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("its messages are no list")
    return value


def _some(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if not 1 <= len(turns) <= MOST_TURN:
        raise ValueError("nobody asks anything" if not turns else f"has more than {MOST_TURN:,} turns")
    return turns


def _instant(value: dict[str, Any]) -> Any:
    """When a conversation began, where it says so."""
    return next((value[name] for name in TIME_NAMES if value.get(name) is not None), None)
