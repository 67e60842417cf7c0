"""CONTRIBUTING.md names modules, folders and names of the code: each of them is there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.case import case

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
RECIPES = PAGE.partition("## Where something new goes")[2].partition("\n## ")[0]
PRODUCT = [
    path
    for room in ("inference_benchmarker", "server_capacity", "client_capacity", "visualization", "factories")
    for path in (ROOT / room).rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
]
MADE = ("build/site",)  # by a command of the page
TASKS = (
    "A finding",
    "A source of server metrics",
    "An example",
    "A flag",
    "A kind of arrival",
    "A kind of embedded endpoint",
    "A figure of the run page",
    "A column of the records",
    "A way to price an instance",
    "A page",
)


def quoted(page: str) -> list[str]:
    """What stands in backticks outside of blocks of code."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^ *```.*?^ *```", "", page, flags=re.DOTALL | re.MULTILINE))


def is_path(text: str) -> bool:
    """Tells whether a quoted word is a path without a part that stands for others, such as NAME."""
    return bool(re.fullmatch(r"[\w./-]*(/|\.py)[\w./-]*", text)) and not re.search(r"\b[A-Z]{4,}\b|_NAME", text)


def test_every_path_is_there() -> None:
    paths = [text for text in quoted(PAGE) if is_path(text) and text not in MADE]
    assert len(paths) > 50
    names = {path.name for path in PRODUCT}
    for text in paths:
        with case(text):
            homes = (ROOT, ROOT / "inference_benchmarker", ROOT / "server_capacity/metrics/prometheus")
            assert text in names or any((home / text).exists() for home in homes)


def test_every_name_of_a_recipe_is_in_the_code() -> None:
    names = {text.partition("(")[0] for text in quoted(RECIPES)}
    names = {name for name in names if re.fullmatch(r"[A-Za-z_]\w*", name)}
    assert len(names) > 20
    words = {word for path in PRODUCT if path.suffix == ".py" for word in re.findall(r"\w+", path.read_text())}
    words |= {path.stem for path in PRODUCT}
    for name in sorted(names):
        with case(name):
            assert name in words


def test_what_is_added_most_often_has_its_recipe() -> None:
    assert [task for task in TASKS if f"\n**{task}**" not in RECIPES] == []
