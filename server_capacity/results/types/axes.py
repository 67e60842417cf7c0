"""The values of ``--vary``, and the variants that all of them make together. Pure."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Literal

from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.words.redact import HIDDEN, excerpt, quoted, without

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Kind = Literal["argument", "env", "payload"]
Values = tuple[tuple[str, str], ...]
"""Names, and a text for each."""

PAYLOAD = "payload."
"""A name with this prefix is of what is sent, not of the endpoint."""

MOST_VARIANTS = 200
_EXPECTED = "expected NAME=VALUE,VALUE, such as instance_type=ml.m5.xlarge,ml.c5.xlarge"
_PREFIXES: tuple[Kind, ...] = ("env", "payload")
_OPENING, _CLOSING = "[{(", "]})"


@dataclass(frozen=True, slots=True)
class Axis:
    """A name that is varied, without the prefix that tells its kind, and the texts of its values."""

    kind: Kind
    name: str
    texts: tuple[str, ...]

    @property
    def flag(self) -> str:
        """Its name as it is given, and as it stands in a ranking."""
        return self.name if self.kind == "argument" else f"{self.kind}.{self.name}"


@dataclass(frozen=True, slots=True)
class Variant:
    """A value of every axis. ``arguments`` and ``env`` make the endpoint; ``payload`` is of what is sent to it."""

    arguments: Values = ()
    env: Values = ()
    payload: Values = ()

    def to_json(self) -> dict[str, str]:
        """Text by name, in the order of a table."""
        env = [(f"env.{name}", text) for name, text in self.env]
        return dict([*self.arguments, *env, *((f"payload.{name}", text) for name, text in self.payload)])


def parse_axis(flag: str, text: str) -> Axis:
    """One ``--vary``. Commas within brackets and quotes belong to a value."""
    name, equals, values = text.partition("=")
    kind, dot, bare = name.strip().partition(".")
    own: Kind = next((each for each in _PREFIXES if dot and kind == each), "argument")
    bare = bare if own != "argument" else name.strip()
    texts = tuple(map(str.strip, _apart(values)))
    if not equals or not re.fullmatch(r"[^\W\d]\w*", bare) or "" in texts:
        raise BenchmarkError(f"{flag} {quoted(text)}: {_EXPECTED}.")
    if twice := [value for value, count in Counter(texts).items() if count > 1]:
        raise BenchmarkError(f"{flag} {excerpt(text, 100)}: {twice[0]!r} appears twice.")
    return Axis(own, bare, texts)


def _apart(text: str) -> Iterator[str]:
    """The parts between commas that stand in no brackets and in no quotes."""
    part, depth, quote = "", 0, ""
    for sign in text:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        else:
            depth += (sign in _OPENING) - (sign in _CLOSING)
        if sign == "," and depth <= 0 and not quote:
            yield part
            part = ""
        else:
            part += sign
    yield part


def variants_of(axes: Sequence[Axis]) -> list[list[Variant]]:
    """The endpoints to make, each as the variants that are measured on it, which differ in what is sent alone."""
    several = Counter(axis.flag for axis in axes)
    refuse([f"--vary {flag} is given {count} times." for flag, count in several.items() if count > 1])
    number = prod(len(axis.texts) for axis in axes)
    if number > MOST_VARIANTS:
        raise BenchmarkError(f"--vary makes {number:,} variants; at most {MOST_VARIANTS} are measured at a time.")
    kinds: tuple[Kind, ...] = ("argument", "env", "payload")
    arguments, env, payload = (list(_products([axis for axis in axes if axis.kind == kind])) for kind in kinds)
    return [[Variant(first, second, third) for third in payload] for first in arguments for second in env]


def _products(axes: Sequence[Axis]) -> Iterator[Values]:
    names = [axis.name for axis in axes]
    for texts in product(*(axis.texts for axis in axes)):
        yield tuple(zip(names, texts, strict=True))


def stored_variants(variants: Sequence[Variant]) -> list[dict[str, str]]:
    """The variants without secrets. Several secrets of one name are numbered: what differs must not look the same."""
    given = [each.to_json() for each in variants]
    alike: dict[tuple[str, str], list[str]] = {}
    for name, text in dict.fromkeys(pair for each in given for pair in each.items()):
        alike.setdefault((name, without(text)), []).append(text)

    def stored(name: str, text: str) -> str:
        clean = without(text)
        texts = alike[name, clean]
        return clean if len(texts) == 1 else f"{clean} #{texts.index(text) + 1}"

    return [{name: stored(name, text) for name, text in each.items()} for each in given]


def unnumbered(text: str) -> str:
    """A text of a stored variant as its search has it, which knows of no other."""
    return re.sub(r" #\d+\Z", "", text) if HIDDEN in text else text


def label_of(variant: dict[str, str]) -> str:
    """``ml.m5.xlarge, workers=2, OMP_NUM_THREADS=4``: as a variant is called; without any value, the endpoint."""
    parts = [text if name == "instance_type" else f"{name.split('.', 1)[-1]}={text}" for name, text in variant.items()]
    return ", ".join(parts) or "the endpoint"
