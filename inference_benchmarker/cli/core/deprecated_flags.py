"""The flags of the original tool that have another name today, or none: a command line of old goes on working."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.cli.core.terminal import say

if TYPE_CHECKING:
    from collections.abc import Sequence

RENAMED = {"--parent-dir": "--output-dir"}
GONE = {
    "--no-postprocess": "it has no effect any more, because a wave is summarised while it runs",
    "--theme": "the page follows the reader's system: light or dark",
}
"""Flags without a meaning, and what is so instead."""

_TAKES_VALUE = ("--theme",)


def in_todays_words(arguments: Sequence[str]) -> list[str]:
    """The arguments with today's flags; those without a meaning are left out, and it is said."""
    found: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        flag, equals, value = argument.partition("=")
        if flag not in GONE:
            found.append(RENAMED.get(flag, flag) + equals + value)
            continue
        say(f"{flag} is ignored: {GONE[flag]}.")
        if flag in _TAKES_VALUE and not equals:
            next(rest, None)
    return found
