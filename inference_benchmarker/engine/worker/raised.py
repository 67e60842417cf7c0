"""The place where the user's code raised, and what it had in its hands then; its exception may be anything."""

from __future__ import annotations

import linecache
import sysconfig
from collections import Counter
from inspect import getattr_static
from pathlib import Path
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

from inference_benchmarker.records.batch import MAX_TEXT_LENGTH, MAX_TEXTS
from inference_benchmarker.records.error_cause import before, causes
from inference_benchmarker.records.error_key import error_key, error_text, storable
from inference_benchmarker.records.record import RequestRecord
from inference_benchmarker.words.redact import excerpt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType, TracebackType

_OWN = str(Path(__file__).resolve().parents[2])
_OTHERS = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")} | {_OWN, "<"})
MOST_KEYS = 100
_MOST_FRAMES, _MOST_CAUSES = 12, 4
_MOST_VALUES = 3
_READ = 10_000  # more than is shown, as a secret may begin within it
_BODIES = ("_content", "_body", "content", "text", "body", "doc")  # those of requests and aiohttp first
_SLOTS = (MemberDescriptorType, type(RequestRecord.error))  # of a class with slots, and of a named tuple
# Its own one: a class of the user's may have any attribute of that name, with any number of steps.
_traceback_of = BaseException.__dict__["__traceback__"].__get__


class Tracebacks:
    """Says where the first few failures of each key were raised, of a bounded number of keys."""

    def __init__(self, say: Callable[[str], None], cut: Callable[[str, int], str] = excerpt) -> None:
        self._say = say
        self._cut = cut
        self._reported: Counter[str] = Counter()

    def take(self, index: int, key: str, exception: BaseException) -> None:
        """One more failure of an arrival."""
        if self._reported[key] < MAX_TEXTS and (key in self._reported or len(self._reported) < MOST_KEYS):
            self._reported[key] += 1
            self._say(f"arrival {index} failed: {traceback_text(exception, self._cut)}")


def traceback_text(exception: BaseException, cut: Callable[[str, int], str] = excerpt) -> str:
    """Key, text and places of an exception and of those it came from: bounded, and without reading any file.

    ``cut`` makes a text that short without leaving half of a secret, which nobody would know for one.
    """
    parts: list[str] = []
    for cause in _came_from(exception):
        text = cut(error_text(cause), MAX_TEXT_LENGTH)
        places = [f"  {_place(frame.f_code.co_filename, frame, line)}" for frame, line in _frames(cause)]
        parts.append("\n".join([f"{error_key(cause)}: {text}", *places[-_MOST_FRAMES:]]))
    return storable("\nfrom ".join(parts))


def _came_from(exception: BaseException) -> list[BaseException]:
    """The exception and the few before it, as Python's own traceback would tell them; each once."""
    found = [exception]
    while len(found) < _MOST_CAUSES:
        further = before(found[-1])
        if further is None or any(further is other for other in found):
            break
        found.append(further)
    return found


def raised_at(exception: BaseException, home: Path) -> str:
    """The file, line and code of the user's in which it was raised; nothing where it was not in the user's.

    ``home`` is the factories file's folder.
    """
    found = _users_frame(exception, home)
    if found is None:
        return ""
    frame, line = found
    file = frame.f_code.co_filename
    code = linecache.getline(file, line).strip()
    return _place(Path(file).name, frame, line) + (f": {code}" if code else "")


def in_hand(exception: BaseException, payload: Any, home: Path) -> Iterator[str]:
    """The texts, objects and answers that the user's code had in its variables then, the last ones first."""
    if (document := _already_there(exception, "doc")) is not None and (text := _shown(document)):
        yield text
        return
    found = _users_frame(exception, home)
    if found is None:
        return
    number = 0
    for name, value in reversed(list(found[0].f_locals.items())):
        if number < _MOST_VALUES and value is not payload and (text := _shown(value)):
            number += 1
            yield f"{name} = {text}"


def _place(file: str, frame: FrameType, line: int) -> str:
    return f"{file}, line {line}, in {frame.f_code.co_name}"


def _shown(value: Any) -> str:
    """A text, bytes, an object of JSON's, or what was read of an answer's body; nothing of anything else."""
    if type(value) is bytes or type(value) is bytearray:
        return bytes(value[:_READ]).decode("utf-8", "replace")
    if type(value) is str:
        return value[:_READ]
    if type(value) is dict or type(value) is list:
        try:
            return repr(value)[:_READ]
        except BaseException:
            return ""
    if callable(value):
        return ""
    bodies = (_already_there(value, name) for name in _BODIES)
    return next((_shown(body) for body in bodies if type(body) in (bytes, str) and body), "")


def _already_there(holder: Any, name: str) -> Any:
    """An attribute that takes no code to have: the properties of an answer may read on, and wait for a server."""
    try:
        found = getattr_static(holder, name, None)
        return found.__get__(holder) if type(found) in _SLOTS else found
    except BaseException:
        return None


def _users_frame(exception: BaseException, home: Path) -> tuple[FrameType, int] | None:
    """The innermost frame of the factories file or of one beside it, else of other code that is not installed.

    It is the exception's own, or one of what it came from.
    """
    found = [[place for place in _frames(cause) if _is_users(place[0])] for cause in causes(exception)]
    beside = [[place for place in places if home in Path(place[0].f_code.co_filename).parents] for places in found]
    return next((places[-1] for places in [*beside, *found] if places), None)


def _is_users(frame: FrameType) -> bool:
    """Compiled modules, gevent's among them, name their source by a path in the place where they were built."""
    file = frame.f_code.co_filename
    return Path(file).is_absolute() and not file.startswith(_OTHERS)


def _frames(exception: BaseException) -> Iterator[tuple[FrameType, int]]:
    """The frames that it went through, the outermost first, without those of ours that called the user's code."""
    step: TracebackType | None = _traceback_of(exception)
    while step is not None:
        if not step.tb_frame.f_code.co_filename.startswith(_OWN + "/engine/"):
            yield step.tb_frame, step.tb_lineno
        step = step.tb_next
