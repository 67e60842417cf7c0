"""One word per thing, in code, flags, reports and docs; and docstrings that are sentences.

docs/reference/metrics.md says what each word means. A word that has an exception is listed with it.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGES = ("inference_benchmarker", "server_capacity", "client_capacity", "visualization", "factories")
CODE = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*_capacity/*.md")]
PROSE = ("tutorials", "how-to", "explanation")
USERS_PAGES = (*PROSE, "reference")
NO_HTTP = ("plan", "records", "facts", "summary", "verdict", "report", "wave", "engine", "cli", "capacity", "docs")
QUESTIONS = re.compile(r"(What|Whether|How|Where|Who)\b")


class Word(NamedTuple):
    """A word that is not used, and the one that is. ``but``: what it may stand in, because its name is promised.

    ``within``: the folders in which it means the wrong thing; without one, everywhere.
    """

    pattern: str
    instead: str
    but: str = ""
    within: tuple[str, ...] = ()


WORDS = (
    Word(r"\bObserved\b", "WaveFacts"),
    Word(r"\bWitness\b", "Probe"),
    Word(r"[Jj]ournal", "SpoolState, WorkerState", but="Journal of"),  # of statistics
    Word(r"_?\bdoubts\b|_doubts\b", "warnings"),
    Word(r"\bheavier\b", "worst_exit_code, graver"),
    Word(r"\bsettle\(", "resolve, reconcile_ledgers"),
    Word(r"\bServed\b", "PlatformMetrics"),
    Word(r"\buses\(", "used_hardware"),
    Word(r"[Dd]emo[ _](endpoint|server)", "embedded endpoint", but="demo_endpoint_|factories_demo_endpoint"),
    Word(r"[Ss]tand-in", "embedded endpoint"),
    Word(
        r"\bchunks?\b",
        "piece",
        # the column and its field, until the next schema; aiperf's and openai's own names; HTTP's own chunks
        but=r'"chunks"|"chunk"|`chunks`|\.chunks\b|chunks: int|\bchunks = |, chunks, |inter_chunk_latency|HTTP chunk',
        within=NO_HTTP,
    ),
    Word(
        r"\btokens?\b",
        "arrival",
        but=r"token bucket|token's arrival|number of a token|\W{1,2}tokens\W{1,2}|its tokens",
        within=("plan", "worker"),
    ),
    Word(r"held against", "compared with, checked against", within=PROSE),
    Word(r"\bg[ai]ves? out\b", "violates the limit, saturates", within=PROSE),
    Word(r"\b(requests|answers) a second\b", "per second", within=PROSE),
    Word(r"coin toss|hiccup any more|all along", "by chance, persistent, throughout", within=PROSE),
    Word(r"\b(is|are|was) told\b", "is reported", within=PROSE),
    Word(
        r"(?<![A-Za-z])(un|fore)?[Tt]old(?![A-Za-z])",
        "reported, known, given, shown",
        but="not_told|told to (stop|close|end)|told otherwise|told on standard input",  # a key of summary.json; orders
        within=("benchmarker", "server", "client", "visualization", "factories"),
    ),
    Word(r"\bin no (number|time|figure|latency)\b", "excluded from", within=USERS_PAGES),
    Word(r"\bso many \w+ that\b", "this number of, shared by", within=(*USERS_PAGES, "cli")),
    Word(r"\bmade anew\b", "new for each", within=(*USERS_PAGES, "cli")),
    Word(r"\b[Tt]ime-outs?\b", "timeout", within=USERS_PAGES),
    Word(r"\bof yours\b", "your own", within=USERS_PAGES),
    Word(r"(?<![Tt]here )\b(is|are) no (JSON|time|text|plan|size|object)\b", "is not", within=USERS_PAGES),
    Word(r"\bmust be (a text|texts)\b", "a string"),
    Word(r"\b[Pp]roofs?\b|\bproven?\b", "verification", but=r"_proof/|\bproof\.(json|txt)|#proof", within=PROSE),
    Word(r"arrivals? tokens?|turns? (it|them) into tokens|takes? tokens\b|due token", "arrival"),
)


def lines() -> Iterator[tuple[str, int, str]]:
    """Each line of the code and of the docs, with its place."""
    for path in (*CODE, *PAGES):
        name = str(path.relative_to(ROOT))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            yield name, number, line


@pytest.mark.parametrize("word", WORDS, ids=lambda word: word.instead)
def test_each_thing_has_one_word(word: Word) -> None:
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, number, line in lines()
        if is_within(name, word) and re.search(word.pattern, re.sub(word.but, "", line) if word.but else line)
    ]
    assert found == [], f"say {word.instead}"


def is_within(name: str, word: Word) -> bool:
    return not word.within or any(folder in re.split(r"[/_]", name) for folder in word.within)


def docstrings(path: Path) -> Iterator[str]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, documented):
            yield ast.get_docstring(node) or ""


def test_a_docstring_is_a_sentence_and_no_question() -> None:
    found = {str(path.relative_to(ROOT)): text for path in CODE for text in docstrings(path) if QUESTIONS.match(text)}
    assert found == {}
