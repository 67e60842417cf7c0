"""Where an exception of the user's code was raised, and what that code had in its hands."""

from __future__ import annotations

import json
from io import BytesIO
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import requests

from inference_benchmarker.clients import pool
from inference_benchmarker.engine.worker.raised import MOST_KEYS, Tracebacks, in_hand, raised_at, traceback_text
from inference_benchmarker.records.batch import MAX_TEXT_LENGTH
from inference_benchmarker.records.batch_writer import BatchWriter
from tests.case import case

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILE = """
import json

class Answer:
    content = b"of an object"

class Odd(Exception):
    __traceback__ = __cause__ = __context__ = property(lambda _: 1 / 0)
    def __str__(self):
        raise SystemExit

def parse(body):
    return json.loads(body)["text"]

def wrapped(payload):
    try:
        parse("{}")
    except KeyError as error:
        raise RuntimeError("no text") from error

def local(payload):
    body = b'{"error": "busy"}'
    copied = payload
    answer = json.loads(body)
    return answer["text"]

def of_an_object(payload):
    response = Answer()
    raise ValueError(1)

def odd(payload):
    raise Odd

def streamed(payload):
    line = "data: {"
    yield "a"
    json.loads(line.removeprefix("data: "))

from unittest.mock import MagicMock

class Endless(Exception):
    __traceback__ = property(lambda _: MagicMock())

def endless(payload):
    raise Endless

class Untrue(Exception):
    def __bool__(self):
        raise SystemExit

def untrue(payload):
    raise Untrue

def calls(library):
    library()
"""


@pytest.fixture
def raised(tmp_path: Path) -> Callable[..., BaseException]:
    """What a function of the file raises."""
    (tmp_path / "f.py").write_text(FILE)
    names: dict[str, Any] = {}
    exec(compile(FILE, str(tmp_path / "f.py"), "exec"), names)  # noqa: S102 - the user's file

    def call(name: str, payload: Any = "the payload") -> BaseException:
        try:
            result = names[name](payload)
            list(result)
        except BaseException as error:
            return error
        raise AssertionError(name)

    return call


@pytest.mark.parametrize(
    ("name", "place", "values"),
    [
        ("parse", 'line 13, in parse: return json.loads(body)["text"]', ["the payload"]),
        (
            "local",
            'line 25, in local: return answer["text"]',
            ["answer = {'error': 'busy'}", 'body = {"error": "busy"}'],
        ),
        ("of_an_object", "line 29, in of_an_object: raise ValueError(1)", ["response = of an object"]),
        ("wrapped", 'line 19, in wrapped: raise RuntimeError("no text") from error', []),
        ("streamed", 'line 37, in streamed: json.loads(line.removeprefix("data: "))', ["{"]),
        ("odd", "line 32, in odd: raise Odd", []),
        ("endless", "line 45, in endless: raise Endless", []),
    ],
)
def test_the_users_line_and_what_it_choked_on(
    name: str, place: str, values: list[str], raised: Callable[..., BaseException], tmp_path: Path
) -> None:
    payload = "the payload"
    error = raised(name, payload)
    assert raised_at(error, tmp_path) == (place and f"f.py, {place}")
    assert list(in_hand(error, payload, tmp_path)) == values


@pytest.mark.parametrize(
    "built_at",
    ["event.py", "src/gevent/_gevent_c_greenlet_primitives.pxd", "/shared/client.py"],
    ids=["py", "pxd", "absolute"],
)
def test_a_frame_beside_the_factories_file_goes_before_a_compiled_or_a_shared_one(
    built_at: str, raised: Callable[..., BaseException], tmp_path: Path
) -> None:
    names: dict[str, Any] = {}
    exec(compile("def deeper():\n    raise OSError('refused')", built_at, "exec"), names)  # noqa: S102 - a library
    assert raised_at(raised("calls", names["deeper"]), tmp_path).startswith("f.py, line 55, in calls")
    alone = raised_at(raised("calls", names["deeper"]), tmp_path / "elsewhere")
    assert alone == (
        "client.py, line 2, in deeper" if built_at.startswith("/") else "f.py, line 55, in calls: library()"
    )


def test_a_traceback_goes_through_what_it_came_from_and_reads_no_file(
    raised: Callable[..., BaseException], tmp_path: Path
) -> None:
    error = raised("wrapped")
    (tmp_path / "f.py").unlink()
    first, last = traceback_text(error).split("\nfrom ")
    assert first.startswith("RuntimeError: no text\n")
    assert f"\n  {tmp_path}/f.py, line 19, in wrapped" in first
    assert last.startswith("KeyError: 'text'\n")
    assert last.endswith(f"\n  {tmp_path}/f.py, line 17, in wrapped\n  {tmp_path}/f.py, line 13, in parse")


@pytest.mark.parametrize(("name", "line"), [("odd", 32), ("endless", 45)])
def test_an_exception_that_makes_up_where_it_was_raised_has_its_true_place(
    name: str, line: int, raised: Callable[..., BaseException], tmp_path: Path
) -> None:
    assert traceback_text(raised(name)).endswith(f"\n  {tmp_path}/f.py, line {line}, in {name}")


def test_an_exception_that_cannot_be_asked_ends_nobody(raised: Callable[..., BaseException]) -> None:
    wrapper = ValueError("outer")
    wrapper.__cause__ = raised("untrue")
    assert traceback_text(wrapper).startswith("ValueError: outer\nfrom Untrue: ")


def test_exceptions_that_came_from_each_other_are_reported_once() -> None:
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert traceback_text(first) == "ValueError: a\nfrom ValueError: b"


def test_what_python_would_not_tell_is_not_reported() -> None:
    error = ValueError("told")
    error.__context__ = OSError("hidden by its raiser")
    assert traceback_text(error) == "ValueError: told\nfrom OSError: hidden by its raiser"
    error.__suppress_context__ = True
    assert traceback_text(error) == "ValueError: told"


@pytest.mark.parametrize(("secret", "begins"), [("open-sesame-and-close", "open"), ("Bearer abcdefghijklmnop", "abc")])
def test_no_half_of_a_secret_is_left_where_a_text_is_cut(secret: str, begins: str) -> None:
    writer = BatchWriter(["open-sesame-and-close"])
    for before in range(MAX_TEXT_LENGTH - 30, MAX_TEXT_LENGTH + 1):
        lines: list[str] = []
        error = ValueError("x" * before + f" {secret} " + "y" * 5000)
        Tracebacks(lines.append, writer.cut).take(0, "ValueError", error)
        with case(before):
            assert begins not in lines[0]


def test_a_traceback_is_bounded() -> None:
    def deep(levels: int) -> None:
        if not levels:
            raise ValueError("x" * 10**6)
        try:
            deep(levels - 1)
        except ValueError as error:
            raise ValueError("y" * 10**6) from error

    with pytest.raises(ValueError, match="y") as failed:
        deep(50)
    assert len(traceback_text(failed.value)) < 20_000


def test_the_first_three_of_each_key_and_a_hundred_keys_are_reported() -> None:
    lines: list[str] = []
    tracebacks = Tracebacks(lines.append)
    for number in range(10):
        for key in range(2 * MOST_KEYS):
            tracebacks.take(number, f"E{key}", ValueError(str(key)))
    assert len(lines) == 3 * MOST_KEYS
    assert lines[0] == "arrival 0 failed: ValueError: 0"
    assert [text.split()[1] for text in lines if text.endswith(" 7")] == ["0", "1", "2"]


def test_json_that_is_none_is_what_it_choked_on(tmp_path: Path) -> None:
    with pytest.raises(json.JSONDecodeError) as failed:
        json.loads("<html>")
    assert list(in_hand(failed.value, None, tmp_path)) == ["<html>"]


class InMidStream:
    """An answer whose properties read on."""

    def __init__(self, **own: Any) -> None:
        self.__dict__.update(own)

    def read(self) -> bytes:
        raise AssertionError("read on")

    content = text = body = property(read)


def raised_holding(answer: object, folder: Path) -> BaseException:
    """The error of a file of the user's that has the answer in a variable."""
    names: dict[str, Any] = {"answer_": answer}
    code = "def f():\n    answer = answer_\n    raise ValueError"
    exec(compile(code, str(folder / "g.py"), "exec"), names)  # noqa: S102 - the user's file
    try:
        names["f"]()
    except ValueError as error:
        return error
    raise AssertionError


class Slotted:
    """An answer without a dictionary."""

    __slots__ = ("body",)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (InMidStream(_content=b"read"), ["answer = read"]),
        (InMidStream(_content=False), []),  # as of an answer of requests of which nothing was read
        (InMidStream(), []),
        (SimpleNamespace(text="as it is"), ["answer = as it is"]),
        (pool.Answer(200, {}, b"of a fast client"), ["answer = of a fast client"]),
        (Slotted(), []),
    ],
    ids=["read", "unread", "properties", "plain", "tuple", "slots"],
)
def test_nothing_is_read_of_an_answer_that_was_not_read_yet(
    answer: object, expected: list[str], tmp_path: Path
) -> None:
    error = raised_holding(answer, tmp_path)
    assert list(in_hand(error, None, tmp_path)) == expected


def test_an_answer_of_requests_in_mid_stream_is_left_where_it_is(tmp_path: Path) -> None:
    answer = requests.Response()
    answer.raw = BytesIO(b"the rest")
    error = raised_holding(answer, tmp_path)
    assert list(in_hand(error, None, tmp_path)) == []
    assert answer.raw.read() == b"the rest"
    answer.raw.seek(0)
    assert answer.content == b"the rest"
    assert list(in_hand(error, None, tmp_path)) == ["answer = the rest"]
