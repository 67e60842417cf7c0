from __future__ import annotations

import tomllib
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.toml_text import read_toml
from tests.growth import grows_with_size

if TYPE_CHECKING:
    from pathlib import Path

DEEP = ".".join("a" for _ in range(20_000))
QUOTED = " . ".join(['"a.b"', "'c'"] * 10_000)


@pytest.mark.parametrize(
    "text",
    [f"{DEEP} = 1", f"[{DEEP}]", f"[[ {DEEP} ]]", f"x = {{ {DEEP} = 1 }}", f"x = {{ b = 1, {QUOTED} = 1 }}", QUOTED],
)
def test_a_key_of_thousands_of_parts_is_refused_before_it_is_parsed(tmp_path: Path, text: str) -> None:
    """Its parsing would take minutes."""
    (tmp_path / "c.toml").write_text(f"client-rps = 5\n{text}\n")
    with pytest.raises(ValueError, match="more than 16 parts"):
        read_toml(tmp_path / "c.toml")


WORDS = ".".join("abcdefghijklmnopqrstuvwxyz")
TEXTS = [
    f'x = "hosts, {WORDS}"',
    f"x = 'hosts, {WORDS}'",
    f'x = """\nsaid:\n{WORDS}\n"quoted" \\""", {WORDS}""""',
    f"x = '''\n{WORDS}\n'''",
    f"x = 1 # don't, {WORDS}",
    f"# {{ {WORDS}\nx = 1",
]


@pytest.mark.parametrize("text", TEXTS)
def test_words_with_dots_in_a_text_are_no_key(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.toml").write_text(f"{text}\nclient-rps = 5\n")
    assert read_toml(tmp_path / "c.toml") == tomllib.loads(f"{text}\nclient-rps = 5")


@pytest.mark.parametrize("text", TEXTS)
def test_a_long_key_behind_a_text_is_one(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.toml").write_text(f"{text}\n{DEEP} = 1\n")
    with pytest.raises(ValueError, match="more than 16 parts"):
        read_toml(tmp_path / "c.toml")


@pytest.mark.parametrize("piece", ['\\"""\n', "'''\n", '"', "'", '"""', "#", '"\\'])
def test_texts_are_reported_in_one_pass(tmp_path: Path, piece: str) -> None:
    def read(size: int) -> None:
        (tmp_path / "c.toml").write_text(piece * (size // len(piece)))
        with suppress(ValueError):
            read_toml(tmp_path / "c.toml")

    assert grows_with_size(read, 20_000)


def test_long_texts_numbers_and_tables_are_read(tmp_path: Path) -> None:
    body = "One. Two. " * 1_000
    (tmp_path / "c.toml").write_text(f'body = "{body}"\nurl = "http://127.0.0.1:80/a.b.c"\n[a.b.c]\nx = [1.5, 2.5]\n')
    assert read_toml(tmp_path / "c.toml") == {
        "body": body,
        "url": "http://127.0.0.1:80/a.b.c",
        "a": {"b": {"c": {"x": [1.5, 2.5]}}},
    }
