"""Numbers for names, by which a worker reports labels, errors and finish reasons. Pure."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from inference_benchmarker.records.error_key import storable
from inference_benchmarker.words.redact import CUT

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_NAMES = 10_000
MAX_NAME_LENGTH = 200
OTHER = "(other)"


class Names:
    """Numbers for names, as of labels and errors; one beyond the limit ``most`` is ``(other)``, so memory is bounded.

    ``hide`` takes secrets out of each new name. A long one is cut, and a digest of it keeps it apart from those
    that begin as it does.
    """

    def __init__(self, *initial: str, hide: Callable[[str], str] = str, most: int = MAX_NAMES) -> None:
        self._ids: dict[str | bytes, int] = {}
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._reported = 0
        self._hide = hide
        self._most = most
        for name in initial:
            self[name]

    def __getitem__(self, name: str) -> int:
        known = self._ids.get(name)
        return self._number(name) if known is None else known

    def _number(self, name: str) -> int:
        key = name if len(name) <= MAX_NAME_LENGTH else _digest(name)
        if key not in self._ids:
            if len(self._ids) >= self._most and name != OTHER:
                return self[OTHER]
            self._ids[key] = self._numbered(self._shown(name))
        return self._ids[key]

    def _numbered(self, text: str) -> int:
        """The number of a name as it is shown: names that differ in a secret alone are one."""
        number = self._numbers.get(text)
        if number is None:
            self._names.append(text)  # first: without memory for what follows the number is nobody's
            number = self._numbers[text] = len(self._names) - 1
        return number

    def _shown(self, name: str) -> str:
        text = storable(self._hide(name))
        if len(text) <= MAX_NAME_LENGTH and not text.endswith(CUT):
            return text
        end = f"{CUT} {_digest(name).hex()}"
        return text[: MAX_NAME_LENGTH - len(end)] + end

    def name(self, number: int) -> str:
        """The name of a number."""
        return self._names[number]

    def unreported(self) -> list[str]:
        """Names first used since ``mark_reported``, in order of their numbers."""
        return self._names[self._reported :]

    def mark_reported(self) -> None:
        """Whoever reads the numbers knows all names by now."""
        self._reported = len(self._names)


def _digest(name: str) -> bytes:
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=6).digest()
