"""A batch of records as workers report it: packed, a fixed few tens of bytes a request. Pure."""

from __future__ import annotations

import itertools
import operator
import struct
from collections import deque
from dataclasses import dataclass, field
from json import dumps  # by its name: the user's code may put another function into the module
from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.json_text import parse_json
from inference_benchmarker.records.feed import read_cells
from inference_benchmarker.records.record import Ledger
from inference_benchmarker.records.user_metrics import METRIC, check_metric_names
from inference_benchmarker.words.redact import excerpt, without

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_TEXT_LENGTH = 500
MAX_TEXTS = 3  # of each error
_NAMES = ("labels", "finish_reasons", "errors")

# A packed outcome: two bits are the outcome, five the number of the finish reason, 0 where none was reported.
HAS_STREAM = 0x80  # set when an entry of STREAM belongs to the request
OUTCOME = 0x03
FINISH_SHIFT, FINISH_MASK = 2, 0x1F
# index, due, sent, done, build_ns, bytes, label, error, outcome
BASE = struct.Struct("<qqqqqqHHB")
# first_token, last_token, chunks, tokens_in, tokens_out, number of gaps
STREAM = struct.Struct("<qqqqqI")
# think_ns, turn, how the session ended: of each request of a session, in the order of ``BASE``
TURN = struct.Struct("<qHB")
_SECTIONS = struct.Struct("<IIII")
_WITH_TURNS = struct.Struct("<4sIIIII")
_TURNED = b"\xff" * 4  # no description is as long, so it tells a batch with turns from others
_ROW_SIZES = (BASE.size, STREAM.size, 4, METRIC.size, TURN.size)


def split_batch(data: bytes) -> tuple[dict[str, Any], memoryview, memoryview, memoryview, memoryview, memoryview]:
    """A batch's meta object and its five ``packed_sections``. ValueError where it is none."""
    meta, base, streams, gaps, metrics, turns = _parts(data)
    return parse_json(bytes(meta)), base, streams, gaps, metrics, turns


def packed_sections(data: bytes) -> list[memoryview]:
    """A batch's requests, streams, gaps, metrics and turns, as views of it. ValueError where it is none."""
    return _parts(data)[1:]


def _parts(data: bytes) -> list[memoryview]:
    has_turns = data[:4] == _TURNED
    header = _WITH_TURNS if has_turns else _SECTIONS
    if len(data) < header.size:
        raise ValueError(f"a batch of {len(data)} bytes")
    head, sizes = header.size, header.unpack_from(data)[has_turns:]
    sizes = (*sizes, len(data) - head - sum(sizes))  # what is left are turns, else metrics, which older versions lack
    if sizes[-1] < 0 or any(map(operator.mod, sizes[1:], _ROW_SIZES)):
        raise ValueError(f"a batch of {len(data)} bytes with sections of {sizes}")
    ends, whole = list(itertools.accumulate(sizes, initial=head)), memoryview(data)
    parts = [whole[begin:end] for begin, end in itertools.pairwise(ends)]
    return parts if len(parts) > len(_ROW_SIZES) else [*parts, whole[:0]]


@dataclass(frozen=True, slots=True)
class Report:
    """A worker's batch says of itself: from whom, its sequence number, whether the last, and the ledger by then.

    ``at``: when it was written, in ns after wave start on the worker's own clock.
    ``batch`` is fit for a file: its names and error texts are as ``redacted`` leaves them.
    """

    worker: int
    sequence: int
    final: bool
    ledger: Ledger
    batch: bytes = field(repr=False)
    at: int

    @classmethod
    def of(cls, batch: bytes) -> Report:
        """Reads a batch. Raises ValueError where it is none, so that no reader of a spool meets such a one."""
        meta, *sections = split_batch(batch)
        try:
            ledger = Ledger.from_json(meta["ledger"])
            names = [*meta["labels"], *meta["finish_reasons"], *meta["errors"]]
            names += [name for key, text in meta["texts"] for name in (key, text)]
            check_metric_names(meta.get("metrics", []))
            deque(read_cells(meta.get("feed", [])), maxlen=0)
        except (KeyError, TypeError) as error:
            raise ValueError(f"a batch whose description lacks something: {error!r}") from None
        numbers = [
            meta.get("worker"),
            meta.get("sequence"),
            meta.get("at"),
            *(getattr(ledger, name) for name in ledger.__slots__),
        ]
        if {type(number) for number in numbers} != {int} or type(meta.get("final")) is not bool:
            raise ValueError("a batch whose counts are no whole numbers")
        if not all(isinstance(name, str) for name in names) or not isinstance(meta.get("use", {}), dict):
            raise ValueError("a batch whose names are no texts")
        fit = _fit(batch, meta, sections)
        return cls(meta["worker"], meta["sequence"], meta["final"], ledger, fit, meta["at"])


def redacted(batch: bytes) -> bytes:
    """A worker's batch fit for a file: no secret of this host in its names, of which another one knows nothing.

    In its error texts no credential of any form, either; they are cut to what is shown.
    """
    meta, *sections = split_batch(batch)
    return _fit(batch, meta, sections)


def _fit(batch: bytes, meta: dict[str, Any], sections: Iterable[memoryview]) -> bytes:
    hidden: dict[str, Any] = {kind: names for kind in _NAMES if (names := _hidden(meta[kind])) != meta[kind]}
    if meta["texts"]:
        keys = _hidden([key for key, _ in meta["texts"]])
        texts = [excerpt(text, MAX_TEXT_LENGTH) for _, text in meta["texts"]]
        hidden["texts"] = list(zip(keys, texts, strict=True))
    return joined_batch({**meta, **hidden}, *sections) if hidden else batch


def _hidden(names: list[str]) -> list[str]:
    """The names without secrets, which mostly none has: all at once take a fifth of the time."""
    whole = "\n".join(names)
    return names if without(whole) == whole else [without(name) for name in names]


def joined_batch(meta: dict[str, Any], *sections: bytes | memoryview) -> bytes:
    """A batch as it is stored: the lengths of its parts, and the parts."""
    parts = (dumps(meta, separators=(",", ":")).encode(), *sections)
    if len(sections) < len(_ROW_SIZES) or not sections[-1]:
        return _SECTIONS.pack(*map(len, parts[:4])) + b"".join(parts)
    return _WITH_TURNS.pack(_TURNED, *map(len, parts[:5])) + b"".join(parts)
