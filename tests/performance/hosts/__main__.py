"""``python -m tests.performance.hosts NAME [...]``: waves from several hosts, measured in the laboratory, as root.

``offsets [COUNT]``, ``three [COUNT]``, ``schedule [SECONDS]``, ``joins``, ``records [RATE ...]``,
``turns [COUNT [WAVES A LOGIN]]``, ``questions [COUNT]``, ``ends [WORD ...]`` (those with one of the words in them; all
without). The exit code is 1 where something falls short.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.performance.figures import machine, table
from tests.performance.hosts import ends, joins, offsets, questions, records, schedule, three, turns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.performance.figures import Figure


def _measured(title: str, measure: Callable[..., list[Figure]], *defaults: float) -> Callable[[Sequence[str]], bool]:
    def play(arguments: Sequence[str]) -> bool:
        found = measure(*map(float, arguments), *defaults[len(arguments) :])
        print(table(title, found), flush=True)
        return all(figure.verdict != "short" for figure in found)

    return play


PROGRAMS: dict[str, Callable[[Sequence[str]], bool]] = {
    "offsets": _measured("offsets of clocks", lambda count: offsets.figures(round(count)), 100),
    "three": _measured("waves of three hosts", lambda count: three.figures(round(count)), 3),
    "questions": _measured("clocks asked amid a cut", lambda count: questions.figures(round(count)), 20),
    "schedule": _measured("schedule over hosts", schedule.figures, 10),
    "joins": _measured("joining", joins.figures, 0),
    "turns": _measured("waves in turns", lambda count, a_login: turns.figures(round(count), round(a_login)), 1000, 1),
    "records": records.play,
    "ends": ends.play,
}


def main() -> None:
    """Run the program that is named."""
    name, *rest = sys.argv[1:] or [""]
    if name not in PROGRAMS:
        raise SystemExit(__doc__)
    print(machine(), end="\n\n", flush=True)
    raise SystemExit(0 if PROGRAMS[name](rest) else 1)


if __name__ == "__main__":
    main()
