"""Reads a TOML file that a user gave: small ones, whose reading takes no longer than they are long."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

from inference_benchmarker.system.given import read_given
from inference_benchmarker.words.units import MIB

if TYPE_CHECKING:
    from pathlib import Path

_MOST_PARTS = 16
_PART = r"""(?:[\w-]+|"")"""
_TEXT = re.compile(  # of its four kinds, or a comment; one that has no end goes on to where it must have had one
    r'''"""(?:\\[\s\S]|[^"\\]|"(?!""))*+"{0,5}|"(?:\\.|[^"\\\n])*+"?'''
    r"""|'''(?:[^']|'(?!''))*+'{0,5}|'[^'\n]*+'?|\#[^\n]*+"""
)
_LONG_KEY = re.compile(
    rf"^[ \t\[]*(?:{_PART}[ \t]*\.[ \t]*){{{_MOST_PARTS}}}|[{{,]\s*(?:{_PART}\s*\.\s*){{{_MOST_PARTS}}}", re.M
)


def read_toml(path: Path) -> dict[str, Any]:
    """Its object; OSError where it cannot be read or is above 1 MiB, ValueError or RecursionError for no such TOML.

    tomllib's time grows with the square of a key's parts: those of more than a person writes are refused.
    """
    text = read_given(path, MIB).decode()
    if _LONG_KEY.search(_TEXT.sub(lambda found: "" if found[0].startswith("#") else '""', text)):
        raise ValueError(f"a key has more than {_MOST_PARTS} parts with dots between them")
    return tomllib.loads(text)
