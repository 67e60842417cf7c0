"""The CSV files of BurstGPT and Azure as conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from inference_benchmarker.recording.conversations.turns import ConversationRow, seconds_of, tokens_of
from inference_benchmarker.recording.source import cells_of
from inference_benchmarker.words.redact import quoted
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Sequence


AZURE = ("timestamp", "contexttokens", "generatedtokens")


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


BURST = ("timestamp", "request_tokens", "response_tokens")
CSV = (
    _Columns("BurstGPT", frozenset(BURST), *BURST, unit="s", took="elapsed_time", session="session_id"),
    _Columns("Azure's LLM trace", frozenset(AZURE), *AZURE),
)


class CsvTrace:
    """Rows of a table of requests, which say how many tokens each prompt had in all."""

    def __init__(self, columns: _Columns, names: Sequence[str], delimiter: str, grouped: bool) -> None:
        self._columns, self._delimiter, self._width = columns, delimiter, len(names)
        fields = {"at": columns.at, "tokens": columns.tokens, "out": columns.out, "took": columns.took}
        fields |= {"session": columns.session} if grouped else {}
        self._place = {field: names.index(name) for field, name in fields.items() if name in names}

    def read(self, line: int, text: str) -> ConversationRow:
        """The turn of a row."""
        row = next(cells_of([text], self._delimiter))
        if len(row) != self._width:
            raise ValueError(f"has {len(row)} values, and the header names {self._width}")
        fields = {field: row[place].strip() for field, place in self._place.items()}
        turn = {"tokens": _tokens(fields["tokens"]), "out": _tokens(fields["out"]), "blocks": []}
        took_ns = int(_seconds(fields.get("took") or "0") * NS)
        return ConversationRow(line, fields["at"], [turn], fields.get("session") or None, took_ns, {"totals": True})


def _tokens(text: str) -> int:
    try:
        count: int | str = int(text)
    except ValueError:  # of Python's own, which no user needs to read
        count = quoted(text, 30)
    return tokens_of(count)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        raise ValueError(f"{quoted(text, 30)} is not a time in seconds") from None
    return seconds_of(seconds)
