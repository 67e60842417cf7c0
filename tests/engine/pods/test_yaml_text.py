"""The YAML that is written is what a reader of YAML reads."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from inference_benchmarker.engine.pods.yaml_text import as_yaml

TEXTS = st.text() | st.text(alphabet="ab \n\t:#-'\"|>%@&*![]{}$\\", max_size=12) | st.from_regex(r"[\w.+-]{1,12}")
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda values: st.lists(values, max_size=4) | st.dictionaries(TEXTS, values, max_size=4),
    max_leaves=12,
)


@settings(max_examples=60)
@given(st.dictionaries(TEXTS, VALUES, max_size=4))
@example({"a": ["x\n  y\n\nz\n", {"b": "1e3"}, [], {}, [[1], ["no"]]], "off": "2026-11-23", "n": "0x1f", "s": "a: b"})
@example({"a": "first\n\u2028\n", "b": "\ufeffa\nb\n", "c": " a\nb\n", "d": "a\nb", "e": "a\nb \n", "f": "😀\n😀\n"})
def test_an_object_is_read_as_it_was(value: dict[str, Any]) -> None:
    assert yaml.safe_load(as_yaml(value)) == value


def test_a_text_of_lines_is_shown_as_it_is() -> None:
    assert as_yaml({"data": {"f.py": "if x:\n    y\n\nz\n"}, "list": ["a\nb\n"]}) == (
        "data:\n  f.py: |\n    if x:\n        y\n\n    z\nlist:\n  - |\n    a\n    b\n"
    )
