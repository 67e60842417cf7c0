from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.toml_text import read_toml

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


def test_long_texts_numbers_and_tables_are_read(tmp_path: Path) -> None:
    body = "One. Two. " * 1_000
    (tmp_path / "c.toml").write_text(f'body = "{body}"\nurl = "http://127.0.0.1:80/a.b.c"\n[a.b.c]\nx = [1.5, 2.5]\n')
    assert read_toml(tmp_path / "c.toml") == {
        "body": body,
        "url": "http://127.0.0.1:80/a.b.c",
        "a": {"b": {"c": {"x": [1.5, 2.5]}}},
    }
