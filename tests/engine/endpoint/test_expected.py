"""The check of answers: what passes, what fails and why, and that none takes long."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import gevent
import pytest

from inference_benchmarker import Answer, Response
from inference_benchmarker.cli.core.expect_flags import EXPECT
from inference_benchmarker.clients.openai import Completion
from inference_benchmarker.engine.endpoint.expected import MOST_CHECKED, AnswerCheck, UnexpectedAnswerError
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.records.error_key import error_key
from inference_benchmarker.records.pieces import Reasoning

if TYPE_CHECKING:
    from pathlib import Path

    from inference_benchmarker.plan.expectation import Expectation

PERSON = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"name": {"type": "string", "pattern": "^[a-z]+$"}, "age": {"$ref": "#/$defs/age"}},
    "required": ["name"],
    "$defs": {"age": {"type": "integer", "minimum": 0}},
}
TEXTLESS = "without one"


def parsed(text: str) -> Expectation:
    assert EXPECT.parse is not None
    found: Expectation = EXPECT.parse("--expect", text)
    return found


def checking(tmp_path: Path, *texts: str, schema: Any = PERSON) -> AnswerCheck:
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    return AnswerCheck([parsed(text.replace("FILE", str(tmp_path / "schema.json"))) for text in texts])


def why(check: AnswerCheck, answer: Any) -> tuple[str, str]:
    """The key and the text of the failure."""
    with pytest.raises(UnexpectedAnswerError) as raised:
        check(answer)
    return error_key(raised.value), str(raised.value)


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        ("json", b'{"a": [1, "\\u00e9"]}'),
        ("json", " null\n"),
        ("json", {"parsed": True}),
        ("json", Answer.of(['{"a"', ":1}"], None)),
        ("json", Answer.of([b'{"a"', b":1}"], None)),
        ("json", Answer.of([Reasoning("let me see"), Reasoning("so {}", "{}")], None)),
        ("json", Completion(content={"choices": [{"message": {"content": "[]", "reasoning": "hm"}}]})),
        ("json", Completion(content={"data": [{"embedding": [0.5]}]})),
        ("schema:FILE", '{"name": "bee", "age": 3}'),
        ("schema:FILE", {"name": "bee"}),
        ("text:^[A-Z]", "A bee"),
        ("text:(?i)BEE", b"a bee"),
        ("text:a[\\s\\S]+e$", "a\nbee"),
        ("text:\u00e9", "caf\u00e9".encode()),
        ("text:a:b", "a:b"),
        ("text:cat\\(?s", "cats"),
    ],
)
def test_an_answer_is_as_expected(tmp_path: Path, expected: str, answer: Any) -> None:
    checking(tmp_path, expected)(answer)


@pytest.mark.parametrize(
    ("expected", "answer", "said"),
    [
        ("json", "I am sorry", "got 'I am sorry'"),
        ("json", "", "expected JSON"),
        ("json", '{"a": NaN}', "expected JSON"),
        ("json", b'"\xff"', "expected JSON"),
        ("json", "[" * 100_000, "expected JSON"),
        ("json", "[]" + " " * MOST_CHECKED["json"], "at most 4,194,304 are checked"),
        ("json", None, "invoke gave a NoneType without one"),
        ("json", Response(tokens_out=3), "invoke gave a Response without one"),
        ("json", Answer.of(["sure: ", "{}"], None), "got 'sure: {}'"),
        ("schema:FILE", '{"age": 3}', '"name" is a required property'),
        ("schema:FILE", '{"name": "bee", "age": -1}', "['age']: -1 is less than the minimum of 0"),
        ("schema:FILE", '{"name": "Bee"}', "does not match"),
        ("schema:FILE", "no", "expected JSON"),
        ("text:^bee", "a bee", "expected '^bee' in the text, got 'a bee'"),
        (r"text:is \d+", "it is", r"expected 'is \d+' in the text, got 'it is'"),
        ("text:bee", b"\xff", "expected a text"),
        ("text:bee", {"bee": 1}, TEXTLESS),
        ("text:bee", Completion(content={"data": [{"embedding": [0.5]}]}), TEXTLESS),
    ],
)
def test_an_answer_is_not_as_expected(tmp_path: Path, expected: str, answer: Any, said: str) -> None:
    key, text = why(checking(tmp_path, expected), answer)
    assert key == f"UnexpectedAnswerError {expected.partition(':')[0]}"
    assert said in text
    assert len(text) < 600


@pytest.mark.parametrize("expected", ["json", "schema:FILE", "text:^bee"])
def test_a_key_in_an_answer_is_shown_by_no_half(tmp_path: Path, expected: str) -> None:
    for before in range(60, 110, 7):
        key = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz"
        _, text = why(checking(tmp_path, expected), f"{'x' * before} Bearer {key} and so on")
        assert key[:14] not in text


def test_an_answer_is_all_that_is_expected(tmp_path: Path) -> None:
    check = checking(tmp_path, "json", "text:bee")
    check('{"a": "bee"}')
    assert why(check, '{"a": "cow"}')[0].endswith(" text")
    assert why(check, "bee")[0].endswith(" json")


@pytest.mark.parametrize("pattern", ["(x+)+y", "x.*y", "(a|x|xx)+$y", "(.*)*(.*)*y"])
def test_what_is_catastrophic_elsewhere_takes_linear_time(tmp_path: Path, pattern: str) -> None:
    """A backtracking engine takes years of it, and the test its time limit."""
    answer = "x" * 200_000
    assert why(checking(tmp_path, f"text:{pattern}"), answer)[0].endswith(" text")
    check = checking(tmp_path, "schema:FILE", schema={"type": "string", "pattern": pattern})
    assert why(check, json.dumps(answer))[0].endswith(" schema")


def test_deep_json_of_a_deep_schema_ends_no_worker(tmp_path: Path) -> None:
    check = checking(tmp_path, "schema:FILE", schema={"type": "array", "items": {"$ref": "#"}})
    for depth in (900, 100_000):
        failed = gevent.spawn(lambda depth=depth: check("[" * depth + "1" + "]" * depth)).get
        with pytest.raises(UnexpectedAnswerError):
            failed()


def of_two(reference: dict[str, Any]) -> dict[str, Any]:
    """Two alternatives that refer to the same, and a text."""
    branches = [{"properties": {"args": {"items": reference}, "op": {"const": name}}} for name in ("and", "or")]
    return {"anyOf": [*({"type": "object", "required": ["op"], **each} for each in branches), {"type": "string"}]}


ALTERNATIVES: dict[str, dict[str, Any]] = {
    "root": of_two({"$ref": "#"}),
    "defs": {"$defs": {"e/f": of_two({"$ref": "#/$defs/e~1f"})}, "$ref": "#/$defs/e~1f"},
    "each other": {
        "$defs": {"a": of_two({"$ref": "#/$defs/b"}), "b": of_two({"$ref": "#/$defs/a"})},
        "oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}],
    },
    "anchor": {"$defs": {"e": {"$anchor": "n", **of_two({"$ref": "#n"})}}, "$ref": "#n"},
    "dynamic": {"$dynamicAnchor": "n", **of_two({"$dynamicRef": "#n"})},
    "draft 7": {"$schema": "http://json-schema.org/draft-07/schema#", **of_two({"$ref": "#"})},
}


@pytest.mark.parametrize("schema", ALTERNATIVES.values(), ids=ALTERNATIVES)
def test_the_error_of_a_deep_answer_is_no_work(tmp_path: Path, schema: Any) -> None:
    """The errors of all alternatives double with each level: at 40 they take years, and the test its time limit."""
    check = checking(tmp_path, "schema:FILE", schema=schema)
    for depth in (0, 1, 2, 12, 40, 100):
        for leaf in ("5", '"a"'):
            answer = '{"args":[' * depth + leaf + '],"op":"or"}' * depth
            if leaf == "5":
                key, text = why(check, answer)
                assert key.endswith(" schema")
                assert ("is not valid under" in text) == (depth <= 2), (depth, text)
            else:
                with contextlib.suppress(UnexpectedAnswerError):
                    check(answer)


def test_the_errors_of_a_wide_answer_are_no_work(tmp_path: Path) -> None:
    items = {"anyOf": [{"type": name} for name in ("string", "null", "object")]}
    check = checking(tmp_path, "schema:FILE", schema={"items": items})
    assert "[0]: 0 is not valid under any" in why(check, json.dumps([*range(1000)]))[1]
    assert "too much of it applies to say where" in why(check, json.dumps([*range(35_000)]))[1]


def test_a_schema_of_many_kinds_that_refer_to_themselves_is_checked(tmp_path: Path) -> None:
    """As that of a language's syntax: each level has 70 times the alternatives of the one before it."""
    kinds = [{"properties": {"kind": {"const": at}, "of": {"$ref": "#"}}, "required": ["kind"]} for at in range(70)]
    check = checking(tmp_path, "schema:FILE", schema={"oneOf": kinds})
    for depth in (1, 9):
        check('{"kind":3,"of":' * depth + '{"kind":69}' + "}" * depth)
        assert why(check, '{"kind":3,"of":' * depth + '{"kind":70}' + "}" * depth)[0].endswith(" schema")


def test_a_schema_of_too_much_work_is_refused(tmp_path: Path) -> None:
    """Each of 25 schemas has the one before it twice as an alternative: a number takes a second."""
    twice = {f"a{at}": {"anyOf": [{"$ref": f"#/$defs/a{at - 1}"}] * 2} for at in range(1, 26)}
    with pytest.raises(BenchmarkError, match="rules to one part of an answer, which takes too long"):
        checking(tmp_path, "schema:FILE", schema={"$defs": {"a0": {"type": "null"}, **twice}, "$ref": "#/$defs/a25"})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("xml", "--expect must be json, schema:FILE, text:REGEX or canary[:SHARE], not 'xml'."),
        ("json:x", "must be json"),
        ("text:", "must be json"),
        ("schema:", "must be json"),
        ("schema:/nowhere/s.json", "cannot be read (No such file or directory)"),
        ("text:(?=a)b", "not a regular expression that can be checked in linear time"),
        ("text:(a)\\1", "not a regular expression"),
        ("text:(", "not a regular expression"),
        ("text:\\w{1,1000}x", "not a regular expression"),
        ("text:(?is)a.b", "there is no (?s); write [\\s\\S] for a dot."),
        ("text:\udcff", "a byte that is not UTF-8"),
    ],
)
def test_an_expectation_that_nobody_can_check_is_one_line(given: str, said: str) -> None:
    with pytest.raises(BenchmarkError) as raised:
        parsed(given)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("{", "this is not JSON ("),
        ("[]", "not of types"),
        ('{"type": "objekt"}', "not valid"),
        ('{"$ref": "http://127.0.0.1:9/a.json"}', "another document; put it under $defs"),
        ('{"$ref": "#/$defs/a"}', "does not exist"),
        ('{"pattern": "(?=a)"}', "is not a"),
        ("[" * 100_000, "this is not JSON ("),
    ],
)
def test_a_schema_that_is_none_is_one_line(tmp_path: Path, schema: str, said: str) -> None:
    (tmp_path / "s.json").write_text(schema)
    with pytest.raises(BenchmarkError) as raised:
        parsed(f"schema:{tmp_path / 's.json'}")
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 500
