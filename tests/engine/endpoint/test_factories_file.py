"""The factories file: every form works, every wrong one gives a message that names file, line and expectation."""

from __future__ import annotations

import sys
from collections import Counter
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from inference_benchmarker.engine.endpoint.factories_file import Endpoint, load
from inference_benchmarker.engine.endpoint.source import check_source
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.records.response import Response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

INVOKE = "def invoke_factory(endpoint_name=None):\n    return lambda payload: (endpoint_name, payload)\n"
PAYLOADS = 'def payload_factory():\n    return {"pre_computed": True, "input": ["a", "b", "c"]}\n'


@pytest.fixture(autouse=True)
def _own_modules() -> Iterator[None]:
    """What a factories file imports is gone after its test."""
    modules, path = set(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if "pytest" not in name:
            del sys.modules[name]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write(source: str, name: str = "my_factories.py") -> Path:
        path = tmp_path / name
        path.write_text(dedent(source))
        return path

    return write


FACTORIES = {
    "no argument": "def invoke_factory():\n    return lambda payload: (None, payload)\n",
    "optional argument": INVOKE,
    "required argument": "def invoke_factory(name):\n    return lambda payload: (name, payload)\n",
    "any arguments": "def invoke_factory(*a, **k):\n    return lambda payload: (a[0] if a else None, payload)\n",
    "lambda": "invoke_factory = lambda name=None: lambda payload: (name, payload)\n",
    "class": """
class invoke_factory:
    def __init__(self, name=None):
        self.name = name
    def __call__(self, payload):
        return self.name, payload
""",
    "instance": """
class Maker:
    def __call__(self, name=None):
        return lambda payload: (name, payload)
invoke_factory = Maker()
""",
    "partial": """
import functools
def make(prefix, name=None):
    return functools.partial(lambda first, payload: (name, payload), prefix)
invoke_factory = functools.partial(make, "x")
""",
    "bound method": """
class Client:
    def send(self, payload):
        return self.name, payload
def invoke_factory(name=None):
    client = Client()
    client.name = name
    return client.send
""",
}


@pytest.mark.parametrize("form", FACTORIES)
@pytest.mark.parametrize("name", [None, "my-endpoint"])
def test_every_form_of_factory_makes_an_invoke(write: Callable[..., Path], form: str, name: str | None) -> None:
    if form == "no argument":
        name = None
    loaded = load(write(FACTORIES[form] + PAYLOADS), name)
    assert loaded.invoke("p") == (name, "p")
    assert loaded.payloads == ["a", "b", "c"]


def test_payloads_may_be_built_for_each_request(write: Callable[..., Path]) -> None:
    loaded = load(write(INVOKE + 'def payload_factory():\n    return {"pre_computed": False, "input": lambda: 7}\n'))
    assert loaded.payloads is None
    assert loaded.build is not None
    assert loaded.build() == 7


def test_payload_factory_may_take_arguments(write: Callable[..., Path]) -> None:
    made = 'def payload_factory(pattern="even", n=1):\n    return {"pre_computed": True, "input": [pattern] * n}\n'
    path = write(INVOKE + made)
    assert load(path).payloads == ["even"]
    assert load(path, payload_arguments={"pattern": "hot", "n": 2}).payloads == ["hot", "hot"]
    with pytest.raises(BenchmarkError) as raised:
        load(path, payload_arguments={"patern": "hot"})
    assert str(raised.value) == (
        f"{path}, line 3: payload_factory cannot be called with patern=; its arguments: pattern, n."
    )


def test_modules_beside_the_file_can_be_imported(write: Callable[..., Path]) -> None:
    write("PAYLOADS = [1, 2]\n", "helper_beside.py")
    source = "import helper_beside\n" + returning('{"pre_computed": True, "input": helper_beside.PAYLOADS}')
    assert load(write(source)).payloads == [1, 2]


@pytest.mark.parametrize("name", ["json.py", "my-factories.py", "1st.py"])
def test_the_file_may_have_any_name(write: Callable[..., Path], name: str) -> None:
    import json

    assert load(write(INVOKE + PAYLOADS, name)).payloads == ["a", "b", "c"]
    assert sys.modules["json"] is json


def test_dataclasses_and_labels_work_in_the_file(write: Callable[..., Path]) -> None:
    source = """
    from dataclasses import dataclass
    @dataclass
    class Payload:
        model: str
    def invoke_factory():
        return lambda payload: None
    def payload_factory():
        return {"pre_computed": True, "input": (Payload("m"),), "label": lambda p: p.model}
    """
    loaded = load(write(source))
    assert loaded.label is not None
    assert loaded.payloads is not None
    assert loaded.label(loaded.payloads[0]) == "m"


def returning(value: str) -> str:
    return INVOKE + f"def payload_factory():\n    return {value}\n"


def given(value: str) -> str:
    return returning('{"pre_computed": True, "input": [1, 2], ' + value + "}")


WRONG: dict[str, tuple[str, str]] = {
    "no invoke_factory": (
        PAYLOADS,
        "has no invoke_factory. Define `def invoke_factory(...)` in it; see docs/reference/factories.md.",
    ),
    "no payload_factory": (INVOKE, "has no payload_factory. Define"),
    "invoke_factory is no function": ("invoke_factory = 3\n" + PAYLOADS, "invoke_factory is an int, not a function."),
    "invoke_factory returns nothing": (
        "\ndef invoke_factory():\n    pass\n" + PAYLOADS,
        ", line 2: invoke_factory returned None; expected a function invoke(payload).",
    ),
    "invoke_factory raises": (
        "def invoke_factory():\n    raise KeyError('region')\n" + PAYLOADS,
        ", line 2: invoke_factory() raised KeyError: 'region'.",
    ),
    "no region": (
        "import botocore.exceptions\ndef invoke_factory():\n    raise botocore.exceptions.NoRegionError\n" + PAYLOADS,
        "NoRegionError: You must specify a region. Set AWS_DEFAULT_REGION, for example to us-east-1.",
    ),
    "invoke_factory exits": (
        "import sys\ndef invoke_factory():\n    sys.exit(3)\n" + PAYLOADS,
        ", line 3: invoke_factory() raised SystemExit: 3.",
    ),
    "invoke_factory wants two": (
        "def invoke_factory(a, b):\n    pass\n" + PAYLOADS,
        "invoke_factory() raised TypeError: ",
    ),
    "invoke takes nothing": (
        "def invoke_factory():\n    def invoke():\n        pass\n    return invoke\n" + PAYLOADS,
        ", line 2: invoke must take one argument, the payload.",
    ),
    "async invoke": (
        "def invoke_factory():\n    async def invoke(payload):\n        pass\n    return invoke\n" + PAYLOADS,
        ", line 2: invoke is an async function; expected a plain one.",
    ),
    "async generator": (
        "def invoke_factory():\n    async def invoke(payload):\n        yield 1\n    return invoke\n" + PAYLOADS,
        ", line 2: invoke is an async function; expected a plain one.",
    ),
    "async __call__": (
        "class I:\n    async def __call__(self, payload):\n        pass\ndef invoke_factory():\n    return I()\n"
        + PAYLOADS,
        "invoke is an async function; expected a plain one.",
    ),
    "async partial": (
        "import functools\nasync def send(a, payload):\n    pass\n"
        "def invoke_factory():\n    return functools.partial(send, 1)\n" + PAYLOADS,
        "invoke is an async function; expected a plain one.",
    ),
    "import fails": ("import no_such_module_here\n", ", line 1: importing it raised ModuleNotFoundError: "),
    "import exits": ("\nraise SystemExit('usage')\n", ", line 2: importing it raised SystemExit: usage."),
    "payload_factory raises": (
        INVOKE + "def payload_factory():\n    return 1 / 0\n",
        ", line 4: payload_factory() raised ZeroDivisionError: division by zero.",
    ),
    "payload_factory returns a list": (returning("[1]"), ', line 3: payload_factory returned a list; expected {"pre_'),
    "payload_factory returns None": (returning("None"), ", line 3: payload_factory returned None; expected"),
    "payload_factory lacks input": (
        returning('{"pre_computed": True}'),
        ", line 3: payload_factory returned a dict with the keys 'pre_computed'; expected",
    ),
    "unknown key": (
        given('"wheights": [1, 2]'),
        ", line 3: payload_factory returned the unknown key wheights; known are",
    ),
    "pre_computed is no bool": (
        returning('{"pre_computed": "yes", "input": [1]}'),
        ", line 3: \"pre_computed\" must be True or False, not 'yes'.",
    ),
    "empty list": (returning('{"pre_computed": True, "input": []}'), ', line 3: "input" is an empty list; expected'),
    **{
        f"input is {value}": (
            returning(f'{{"pre_computed": True, "input": {value}}}'),
            ', line 3: with "pre_computed": True, "input" must be a list, not ',
        )
        for value in ("'text'", "b'bytes'", "bytearray(9)", "{}", "{1}", "(x for x in [1])", "None", "len")
    },
    "build is no function": (
        returning('{"pre_computed": False, "input": [1]}'),
        ', line 3: with "pre_computed": False, "input" must be a function, not a list.',
    ),
    "build wants a row": (
        returning('{"pre_computed": False, "input": lambda row: row}'),
        ", line 3: build takes the row of a recording, and no recording is replayed.",
    ),
    "build wants more": (
        returning('{"pre_computed": False, "input": lambda row, more: row}'),
        ', line 3: with "pre_computed": False, "input" must be a plain function build().',
    ),
    **{
        f"weights are {value}": (given(f'"weights": {value}'), ', line 3: "weights" must be numbers of at least 0')
        for value in (
            "[1, -1]",
            "[0, 0]",
            "[1, float('nan')]",
            "[1, float('inf')]",
            "[1e308] * 2",
            "['1', '2']",
            "[1, 10**400]",
        )
    },
    **{
        f"weights are {value}": (given(f'"weights": {value}'), '"weights" must have one number per payload (2), not ')
        for value in ("[1]", "[1, 2, 3]", "3", "{1: 2}")
    },
    "weights without a list": (
        returning('{"pre_computed": False, "input": dict, "weights": [1]}'),
        ', line 3: "weights" needs "pre_computed": True.',
    ),
    "label is no function": (
        given('"label": "model"'),
        ', line 3: "label" must be a function label(payload) -> str, not a str.',
    ),
    "label takes nothing": (given('"label": lambda: "x"'), ', line 3: "label" must be a plain function that takes one'),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_gives_one_message_with_file_line_and_expectation(write: Callable[..., Path], case: str) -> None:
    source, message = WRONG[case]
    path = write(source)
    with pytest.raises(BenchmarkError) as raised:
        load(path)
    text = str(raised.value)
    assert text.startswith(str(path))
    assert message in text
    assert "\n" not in text


def test_a_name_for_a_factory_that_takes_none_is_said(write: Callable[..., Path]) -> None:
    path = write(FACTORIES["no argument"] + PAYLOADS)
    with pytest.raises(BenchmarkError, match=r"invoke_factory\(\) raised TypeError: .* 0 positional arguments but 1"):
        load(path, "my-endpoint")


def test_a_wrong_function_of_another_module_is_named_where_it_is(write: Callable[..., Path]) -> None:
    helper = write("\n\n\ndef payload_factory():\n    return []\n", "helper_elsewhere.py")
    with pytest.raises(BenchmarkError) as raised:
        load(write(INVOKE + "from helper_elsewhere import payload_factory\n"))
    assert str(raised.value).startswith(f"{helper}, line 4: payload_factory returned a list")


def test_a_relative_path_names_its_lines_too(write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("\n\nraise ValueError('x')\n")
    monkeypatch.chdir(path.parent)
    with pytest.raises(BenchmarkError, match=r"^my_factories\.py, line 3: importing it raised ValueError: x\.$"):
        load(path.relative_to(path.parent))


class TestCheckSource:
    FUNCTIONS = ("invoke_factory", "payload_factory")

    def test_it_imports_nothing(self, write: Callable[..., Path]) -> None:
        check_source(write("raise SystemExit\n" + INVOKE + PAYLOADS), functions=self.FUNCTIONS)

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"def broken(:\n", ", line 1: not valid Python ("),
            (b"x = 1\n  y = 2\n", ", line 2: not valid Python (unexpected indent)."),
            (b"\xff\xfe\x00", "not valid Python ("),
            (b"x = '\x00'\n", "f.py: not valid Python ("),
            (b"-" * 100_000 + b"1", "f.py: not valid Python (it is nested too deeply)."),
            (b"", ": has no invoke_factory. Define"),
            (INVOKE.encode(), ": has no payload_factory. Define"),
        ],
    )
    def test_what_is_no_factories_file_is_refused(self, tmp_path: Path, content: bytes, message: str) -> None:
        path = tmp_path / "f.py"
        path.write_bytes(content)
        with pytest.raises(BenchmarkError) as raised:
            check_source(path, functions=self.FUNCTIONS)
        assert str(raised.value).startswith(str(path))
        assert message in str(raised.value)

    def test_what_cannot_be_read_is_said(self, tmp_path: Path) -> None:
        for path in (tmp_path, tmp_path / "missing.py"):
            with pytest.raises(BenchmarkError, match=r"cannot be read .* Give the path of a Python file\."):
                check_source(path)

    @pytest.mark.parametrize(
        "head", [b"\xef\xbb\xbf", b"# -*- coding: latin-1 -*-\n# \xe4\n", b"from helper import *\n"]
    )
    def test_what_python_reads_is_good(self, tmp_path: Path, head: bytes) -> None:
        path = tmp_path / "f.py"
        path.write_bytes(head + (b"" if b"import" in head else (INVOKE + PAYLOADS).encode()))
        check_source(path, functions=self.FUNCTIONS)


def test_a_file_without_the_ending_py_is_refused(write: Callable[..., Path]) -> None:
    with pytest.raises(BenchmarkError, match=r"its name must end in \.py"):
        load(write(INVOKE + PAYLOADS, "factories.txt"))


class TestChoose:
    @staticmethod
    def endpoint(count: int, weights: tuple[float, ...] | None = None) -> Endpoint:
        return Endpoint(print, payloads=range(count), cumulative_weights=weights)

    def test_arrival_i_sends_payload_i_mod_n(self) -> None:
        endpoint = self.endpoint(3)
        assert [endpoint.choose(9, index) for index in range(-3, 7)] == [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]

    def test_weights_are_kept(self, write: Callable[..., Path]) -> None:
        path = write(returning('{"pre_computed": True, "input": [0, 1, 2, 3, 4], "weights": [0, 1, 2.5, 0, 6.5]}'))
        endpoint = load(path)
        drawn = Counter(endpoint.choose(1, index) for index in range(20_000))
        assert set(drawn) == {1, 2, 4}
        expected = [2_000, 5_000, 13_000]
        assert stats.chisquare([drawn[n] for n in (1, 2, 4)], expected).pvalue > 0.01

    @pytest.mark.parametrize("workers", [2, 3, 8])
    def test_each_workers_stripe_has_the_same_mix(self, workers: int) -> None:
        endpoint = self.endpoint(2, (1.0, 4.0))
        for worker in range(workers):
            chosen = [endpoint.choose(5, index) for index in range(worker, 24_000, workers)]
            assert sum(chosen) / len(chosen) == pytest.approx(0.75, abs=0.03)

    def test_it_depends_on_seed_and_arrival_alone(self) -> None:
        endpoint = self.endpoint(4, (1.0, 2.0, 3.0, 4.0))
        first = [endpoint.choose(1, index) for index in range(200)]
        assert first == [endpoint.choose(1, index) for index in reversed(range(200))][::-1]
        assert first != [endpoint.choose(2, index) for index in range(200)]


class TestResponse:
    def test_every_field_is_optional(self) -> None:
        assert Response() == Response(None, None, None, None)
        assert Response(tokens_in=0, tokens_out=2**53, bytes=3).tokens_out == 2**53

    @pytest.mark.parametrize(
        "value",
        [-1, 1.5, "12", 2**53 + 1, 10**5000, float("nan"), True, np.int64(-1)],
        ids=lambda value: type(value).__name__,
    )
    @pytest.mark.parametrize("field", ["tokens_in", "tokens_out", "bytes"])
    def test_what_is_no_count_is_refused(self, field: str, value: Any) -> None:
        with pytest.raises(TypeError, match=rf"Response\({field}=\.\.\.\) must be a whole number from 0 to"):
            Response(**{field: value})

    def test_a_count_of_another_type_becomes_an_ordinary_one(self) -> None:
        class Count(int):
            def __lt__(self, other: object) -> bool:
                raise SystemExit

        response = Response(tokens_in=np.int64(7), tokens_out=Count(3), bytes=np.uint8(2))  # type: ignore[arg-type]
        assert [type(value) for value in (response.tokens_in, response.tokens_out, response.bytes)] == [int] * 3
        assert response == Response(7, 3, 2)

    def test_a_model_becomes_a_text(self) -> None:
        assert Response(model=7).model == "7"  # type: ignore[arg-type]

    def test_one_of_a_derived_class_is_checked_before_it_is_believed(self) -> None:
        class Mine(Response):
            def __init__(self) -> None:
                """Its fields are computed."""

            tokens_in = bytes = model = finish_reason = property(lambda _: None)
            tokens_out = property(lambda _: -5)

        with pytest.raises(TypeError, match="tokens_out"):
            Mine().checked()
        assert Response(1).checked() == Response(1)

    def test_a_derived_class_of_before_there_was_a_field_is_one_without_it(self) -> None:
        class Mine(Response):
            def __init__(self) -> None:
                object.__setattr__(self, "tokens_out", 5)

        assert Mine().checked() == Response(tokens_out=5)
        assert Response(3, metrics={"a": 1}).updated(Mine()) == Response(3, 5, metrics={"a": 1})
