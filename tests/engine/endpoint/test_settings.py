"""The settings of a factories file: which it has, what they mean, and what a text makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.engine.endpoint.settings import Setting, settings_of
from inference_benchmarker.engine.endpoint.source import import_file, source_problems
from inference_benchmarker.errors import BenchmarkError
from tests.mentions import mentions

if TYPE_CHECKING:
    from pathlib import Path

FILE = '''"""A file."""
import os

URL = os.environ.get("MY_URL", "http://127.0.0.1:8080")  # the server's address
FILE = os.getenv("MY_FILE")  # of payloads
MODEL: str = "demo"  # a name
SIZES = (1, 2)  # of requests
# How much of it
# there is.
SHARE = 0.5
LIMITS = {"a": 1}
ON, OFF = True, False
MADE = [MODEL] * 2
TEXT = """
several lines
"""
lower = 1
invoke_factory = payload_factory = print
if True:
    INNER = 1
'''


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "an_endpoint.py"
    path.write_text(FILE)
    return path


def test_constants_in_capitals_are_settings_and_their_comments_say_what_they_mean(path: Path) -> None:
    assert list(settings_of(path).values()) == [
        Setting("URL", "http://127.0.0.1:8080", "the server's address", "MY_URL"),
        Setting("FILE", None, "of payloads", "MY_FILE"),
        Setting("MODEL", "demo", "a name"),
        Setting("SIZES", (1, 2), "of requests"),
        Setting("SHARE", 0.5, "How much of it there is."),
        Setting("LIMITS", {"a": 1}),
    ]


def test_what_is_set_stands_in_the_file_before_what_is_made_of_it(path: Path) -> None:
    module = import_file(path, {"MODEL": "llama", "SIZES": "3", "FILE": "f.csv", "LIMITS": '{"b": true}'})
    found = (module.MODEL, module.MADE, module.SIZES, module.FILE, module.LIMITS, module.SHARE)
    assert found == ("llama", ["llama", "llama"], (3,), "f.csv", {"b": True}, 0.5)


def test_lines_stay_where_they_were(path: Path) -> None:
    path.write_text(FILE + "raise ValueError('no')\n")
    last = FILE.count("\n") + 1
    with pytest.raises(BenchmarkError, match=f"line {last}: importing it raised ValueError: no"):
        import_file(path, {"LIMITS": "{}"})


@pytest.mark.parametrize(
    ("default", "text", "value"),
    [
        ("a", "1", "1"),
        ("a", "", ""),
        (None, "x y", "x y"),
        (1, " 20 ", 20),
        (1.5, "2", 2.0),
        (True, "false", False),
        (False, "ON", True),
        ((1, 2), "3,4", (3, 4)),
        ((1, 2), "[3, 4]", (3, 4)),
        (["a"], "b, c", ["b", "c"]),
        (["a"], '["b"]', ["b"]),
        ({}, "{'a': 1}", {"a": 1}),
    ],
)
def test_a_text_becomes_a_value_of_the_defaults_type(default: Any, text: str, value: Any) -> None:
    found = Setting("NAME", default).value(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("default", "text", "said"),
    [
        (1, "1.5", "--set NAME must be a whole number, not '1.5'."),
        (1.0, "x", "--set NAME must be a number, not 'x'."),
        (True, "maybe", "--set NAME must be true or false, not 'maybe'."),
        ({"a": 1}, "[1]", "--set NAME must be something like {'a': 1}, not '[1]'."),
        ({}, "a", "--set NAME must be something like {}, not 'a'."),
    ],
)
def test_a_text_that_is_no_value_is_said(default: Any, text: str, said: str) -> None:
    with pytest.raises(BenchmarkError) as raised:
        Setting("NAME", default).value(text)
    assert str(raised.value) == said


@given(default=st.sampled_from(["", 1, 1.5, True, None, (1,), ["a"], {}, {1}]), text=st.text())
def test_any_text_is_a_value_or_bad_input(default: Any, text: str) -> None:
    try:
        value = Setting("NAME", default).value(text)
    except BenchmarkError:
        return
    assert type(value) is (str if default is None else type(default))


def test_unknown_names_are_said_with_the_known_ones(path: Path) -> None:
    unknown, bad = source_problems(path, None, {"MODLE": "x", "SIZES": "1", "SHARE": "much"})
    assert mentions(unknown, "an_endpoint.py", "URL", "FILE", "MODEL", "SIZES", "SHARE", "MODEL")
    assert mentions(bad, "--set SHARE", "'much'")


def test_a_file_without_settings_is_reported_how_to_have_one(path: Path) -> None:
    path.write_text("def invoke_factory(): ...\ndef payload_factory(): ...\n")
    (problem,) = source_problems(path, None, {"SIZE": "1"})
    assert problem.startswith("--set SIZE: ")
    assert problem.endswith('a constant in capitals at its top level, as in SIZE = "a value".')
