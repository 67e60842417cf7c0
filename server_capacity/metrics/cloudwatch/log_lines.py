"""Lines of a server's log: which are of one kind, which look like errors, and which were most frequent. Pure.

The lines are foreign: of any length, with any characters, and whatever secrets somebody printed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inference_benchmarker.facts.server_metric import LogLine
from inference_benchmarker.words.redact import redact
from inference_benchmarker.words.text import one_line, plain

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

MOST_LINES = 5
MOST_TEXT = 200
"""Characters of a line that are kept."""

_MOST_OF_AN_EVENT, _MOST_LINES_OF_AN_EVENT = 65_536, 200
_MOST_OF_A_LINE, _MOST_OF_A_KIND = 2000, 500
_BREAK = re.compile(r"[\r\n]")
_MOST_AFTER_A_FRAME = 50

_COLOUR = re.compile(r"\x1b\[[0-9;?]{0,20}[ -/]{0,4}[@-~]")
_VARYING = re.compile(
    r"""
    (?P<kept>HTTP/\d(?:\.\d)?"?\ \d{3}\b | \b(?:status|code|signal)\W{1,3}\d{1,3}\b)
    | \b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b
    | \b0x[0-9a-f]+
    | (?<=/)[^\s/"',:;()]*\d[^\s/"',:;()]*      # a part of a path with a number in it
    | \btmp[a-z0-9_]{8}\b                       # as Python names temporary files
    | \b(?=[a-z_-]{0,40}\d)[\w-]{16,}           # an id
    | \b(?=[a-f]{0,40}\d)[0-9a-f]{8,}\b
    | \d+
    """,
    re.VERBOSE | re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"""\b(?:no|0)\ errors?\b | \berrors?["']?\s?[:=]\s?["']?(?:0(?![.\d])|null|none|false)\b""",
    re.VERBOSE | re.IGNORECASE,
)
_ERROR = re.compile(
    r"""
    (?:Error|Exception)\b
    | ^E\d{4}\                                  # as glog begins an error
    | \b(?i:errors? | exception | critical | fatal | severe | panic | traceback | killed | oom | oomkilled | aborted
        | segfault | segmentation\ fault | core\ dumped | out\ of\ memory | cannot\ allocate | sigkill | sigsegv
        | timed\ out | timeout | refused | broken\ pipe | failed | failure | crashed | unhealthy | denied)\b
    """,
    re.VERBOSE,
)
_FRAME = re.compile(r'Traceback \(most recent call last\)|\bFile "[^"]{1,300}", line \d+')
_RAISED = re.compile(r"(?!(?:INFO|DEBUG|WARN|WARNING|NOTICE|TRACE)\b)[A-Za-z_][\w.]{0,200}(?:: |:?$)")
_BETWEEN = re.compile(
    r"During handling of the above exception|The above exception was the direct cause"
    r"|^\s+at [\w.$<>/]{1,300}\(|^\s+\.\.\. \d+ more$"
)
"""What stands between the exceptions of a chain in Python, and the frames in Java: it says nothing by itself."""


_ORDINARY, _LIKE_AN_ERROR, _RAISED_HERE = range(3)


@dataclass(slots=True)
class _Kind:
    """``weight``: among kinds as frequent as each other, the name of what was raised weighs most."""

    example: str
    weight: int
    count: int = 0


@dataclass(slots=True)
class _Traceback:
    """A traceback whose last line is still to come. ``before``: what each of its lines begins with, as a kind.

    ``left``: how many lines may follow the last frame before it is given up.
    """

    before: str
    left: int = _MOST_AFTER_A_FRAME


@dataclass(slots=True)
class LineCounts:
    """A count of each kind of line in a log. Of a traceback the last line counts, which says what was raised.

    ``secrets``: values that stand in no line that is shown.
    """

    secrets: Collection[str] = ()
    _kinds: dict[str, _Kind] = field(default_factory=dict)
    _tracebacks: dict[str, _Traceback] = field(default_factory=dict)

    def add(self, stream: str, event: str) -> None:
        """Count the lines of an event; events of one stream come in their order."""
        is_whole = len(event) <= _MOST_OF_A_LINE and not _BREAK.search(event)  # and hidden when it is shown
        for line in _lines(event if is_whole else redact(event, self.secrets)):
            self._add(stream, line)

    @property
    def any_error(self) -> bool:
        """Tells whether any line looks like an error."""
        return any(kind.weight for kind in self._kinds.values())

    def most_frequent(self) -> tuple[LogLine, ...]:
        """The most frequent kinds of those that look like errors, or of all where none does."""
        errors = [kind for kind in self._kinds.values() if kind.weight]
        kinds = sorted(errors or self._kinds.values(), key=lambda kind: (-kind.count, -kind.weight))
        return tuple(LogLine(self._shown(kind.example), kind.count) for kind in kinds[:MOST_LINES])

    def _shown(self, line: str) -> str:
        return one_line(redact(line, self.secrets), MOST_TEXT)

    def _add(self, stream: str, line: str) -> None:
        kind = kind_of(line)
        if frame := _FRAME.search(line):
            self._tracebacks[stream] = _Traceback(kind_of(line[: frame.start()].rstrip()))
        elif (traceback := self._tracebacks.get(stream)) is not None and kind.startswith(traceback.before):
            self._go_on(stream, traceback, kind, line)
        elif not _BETWEEN.search(line):
            self._count(kind, line, _weight(line))

    def _go_on(self, stream: str, traceback: _Traceback, kind: str, line: str) -> None:
        """A line that may belong to a traceback: indented ones do, and the one that names the exception ends it."""
        rest = kind[len(traceback.before) :]
        is_indented = rest.startswith("  ")
        ends = not is_indented and bool(_RAISED.match(rest.lstrip()))
        if not is_indented:
            self._count(kind, line, _RAISED_HERE if ends else _weight(line))
        traceback.left -= 1
        if ends or not traceback.left:
            del self._tracebacks[stream]

    def _count(self, name: str, line: str, weight: int) -> None:
        kind = self._kinds.setdefault(name, _Kind(line, weight))
        kind.count += 1
        kind.weight = max(kind.weight, weight)


def kind_of(line: str) -> str:
    """The line with what differs between lines of one kind made the same: numbers, ids, times, addresses, paths."""
    return _VARYING.sub(lambda found: found["kept"] or "#", line[:_MOST_OF_A_KIND])


def looks_like_error(line: str) -> bool:
    """Tells whether a line is about a failure, by its level, an exception's name, or the usual words."""
    return bool(_ERROR.search(_HARMLESS.sub("", line[:_MOST_OF_A_KIND])))


def _weight(line: str) -> int:
    return _LIKE_AN_ERROR if looks_like_error(line) else _ORDINARY


def _lines(event: str) -> Iterator[str]:
    """The lines of an event that are not empty, without what would colour or break them; of a long one both ends."""
    if len(event) > _MOST_OF_AN_EVENT:
        event = f"{event[: _MOST_OF_AN_EVENT // 2]}\n{event[-_MOST_OF_AN_EVENT // 2 :]}"
    lines = event.splitlines()
    if len(lines) > _MOST_LINES_OF_AN_EVENT:
        lines = [*lines[: _MOST_LINES_OF_AN_EVENT // 2], *lines[-_MOST_LINES_OF_AN_EVENT // 2 :]]
    for line in lines:
        if shown := plain(_COLOUR.sub("", line[:_MOST_OF_A_LINE])).rstrip():
            yield shown
