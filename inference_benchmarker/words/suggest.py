"""Finds what a flag, key or command that does not exist was meant to be. Pure."""

from __future__ import annotations

from difflib import get_close_matches
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

LEAST_LIKENESS = 0.6
OF_OTHERS = {
    "-H": "--header",
    "-X": "--method",
    "-d": "--body",
    "-T": "--content-type",
    "-n": "--num-requests",
    "-c": "--concurrency",
    "-r": "--client-rps",
    "-z": "--obs-time",
}
"""Short flags that users of curl, hey and alike have in their fingers."""


def meant(flag: str, known: Collection[str]) -> list[str]:
    """The known flags of which it is a word, as ``--rps`` of ``--client-rps``; else the one that it resembles.

    A short flag is that of other tools.
    """
    if (here := OF_OTHERS.get(flag)) in known:
        return [here] if here else []
    word = _name(flag).lstrip("-").lower().replace("_", "-")
    names = {name.lstrip("-"): name for name in known}
    parts = [name for bare, name in names.items() if word in bare.split("-")]
    return parts or [names[bare] for bare in get_close_matches(word, names, n=1, cutoff=LEAST_LIKENESS)]


def question(flags: Sequence[str]) -> str:
    """The question which of them was meant, after a blank; nothing where none comes close."""
    return f" Did you mean {' or '.join(flags)}?" if flags else ""


def as_file(argument: str) -> str:
    """The way to give a factories file that was given without its flag, after a blank; nothing where it is none."""
    lone = argument.endswith(".py") and not argument.startswith("-")
    return f" Give it as --factories-file {argument}." if lone else ""


def strays(arguments: Sequence[str], unknown: Collection[str]) -> list[str]:
    """The unknown arguments without those that are the value of an unknown flag before them."""
    values = {value for flag, value in pairwise(arguments) if flag in unknown and _takes(flag, value)}
    return [argument for argument in unknown if argument not in values]


def mended(arguments: Sequence[str], unknown: Collection[str], known: Collection[str]) -> Iterator[str]:
    """The arguments with the flags that were surely meant, without the rest of the unknown ones."""
    before = ""
    for argument in arguments:
        flags = meant(argument, known) if argument.startswith("-") else []
        if argument not in unknown:
            yield argument
        elif len(flags) == 1:
            yield flags[0] + argument.removeprefix(_name(argument))
        elif _takes(before, argument) and len(meant(before, known)) == 1:
            yield argument
        before = argument


def _name(argument: str) -> str:
    return argument.partition("=")[0]


def _takes(flag: str, value: str) -> bool:
    """Tells whether the one may be a flag and the other its value."""
    return (flag.startswith("--") or flag in OF_OTHERS) and "=" not in flag and not value.startswith("-")
