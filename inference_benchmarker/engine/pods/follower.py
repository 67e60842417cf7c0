"""The knowledge of a command about its wave in pods, over all its connections: it asks for what it lacks.

First it hears what the wave says, until that has ended; then it takes the results, and confirms them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.version import __version__
from inference_benchmarker.words.redact import hidden, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from inference_benchmarker.engine.hosts.transport import Message
    from inference_benchmarker.engine.pods.draft import Draft

_AT_ONCE = 8  # blocks that are asked for before they come


class DamagedBlockError(Exception):
    """A block is not as it was sent."""


class Follower:
    """``tell``: hears what the wave says. ``draft``: takes the results. ``show``: shows its panel, whatever that is.

    ``code``: the exit code of the wave, once it has ended. ``results``: the folders of the results, once they are here.
    ``is_done``: nothing is left to ask. ``progress`` grows with all that comes.
    """

    def __init__(
        self, tell: Callable[[str], None], draft: Draft, show: Callable[[object], None] = lambda _: None
    ) -> None:
        self._tell, self._draft, self._show = tell, draft, show
        self._at = 0
        self._begun = ""  # of a line
        self._lacking: Iterator[tuple[str, int]] = iter(())
        self._coming = 0
        self.code: int | None = None
        self.results: list[Path] = []
        self.lines = 0
        self.progress = 0
        self.is_done = False

    def begin(self) -> list[Message]:
        """The first words on a new connection."""
        self._coming = 0
        if self.code is None:
            return [{"do": "follow", "at": self._at}]
        return [{"do": "fetched"}] if self.results else [{"do": "list"}]

    def take(self, message: Message) -> list[Message]:
        """Take a message; returns what to say to it.

        Raises DamagedBlockError, ForeignResultsError, and BenchmarkError where the results cannot be stored.
        """
        match message:
            case {"say": "hello", "version": str(version)} if version != __version__ and not self.progress:
                self._tell(f"The image has version {quoted(version)} of this tool, and this command is {__version__}.")
            case {"say": "words", "text": str(text), "at": int(at)} if at > self._at:
                self.progress += 1
                self._at = at
                self._hear(text)
            case {"say": "screen", "lines": lines}:
                self._show(lines)
            case {"say": "ended", "code": int(code)} if self.code is None:
                self.progress += 1
                self._hear("\n" if self._begun else "")
                self.code = code
                return [{"do": "list"}]
            case {"say": "files", "files": dict(files)}:
                self._draft.expect(files)
                self._lacking = self._draft.lacking()
                return self._next()
            case {"say": "block"}:
                if not self._draft.add(message):
                    raise DamagedBlockError
                self.progress += 1
                self._coming -= 1
                return self._next()
            case {"say": "confirmed"}:
                self.is_done = True
            case _:
                pass
        return []

    def _next(self) -> list[Message]:
        """The blocks to ask for next; once all are here, the results take their places."""
        asked: list[Message] = []
        while self._coming < _AT_ONCE and (block := next(self._lacking, None)):
            self._coming += 1
            asked.append({"do": "block", "file": block[0], "at": block[1]})
        if self._coming:
            return asked
        if not self.results:
            self.results = self._draft.finish()
        return [{"do": "fetched"}]

    def _hear(self, text: str) -> None:
        *lines, self._begun = (self._begun + hidden(text)).split("\n")
        self.lines += len(lines)
        for line in lines:
            self._tell(self._draft.at_home(line))
