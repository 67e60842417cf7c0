"""The arguments of a file's factories, read from its source, and values of them from texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.errors import BenchmarkError
from server_capacity.provisioning.arguments import FactoryArguments, Parameter, Signature, factory_arguments, value_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        ("int", "4", 4),
        ("float", "4", 4.0),
        ("str", "4", "4"),
        ("bool", "yes", True),
        ("bool", "False", False),
        ("int | None", "none", None),
        ("Optional[int]", "7", 7),
        ("Optional[int]", "null", None),
        ("int | str", "a", "a"),
        (None, "4", 4),
        (None, "[1, 2]", [1, 2]),
        (None, "ml.m5.large", "ml.m5.large"),
        (None, "none", "none"),
        ("dict[str, str]", '{"a": "b"}', {"a": "b"}),
    ],
)
def test_a_text_becomes_what_the_annotation_says(annotation: str | None, text: str, value: Any) -> None:
    found = value_of(annotation, text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(("annotation", "text"), [("int", "4.5"), ("bool", "maybe"), ("float | None", "x")])
def test_a_text_that_is_no_such_value_is_refused(annotation: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"expected {annotation.split(maxsplit=1)[0]}, not '{text}'"):
        value_of(annotation, text)


def test_a_file_is_read_and_not_run(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "raise SystemExit\n"
        "def endpoint_factory(kind: str, /, instances: 'int' = 1, *, env=None, size=2 * 3, name: str): yield\n"
        "if True:\n"
        "    def payload_factory(**any): pass\n"
    )
    endpoint = Signature(
        (
            Parameter("kind", "str", None, required=True),
            Parameter("instances", "int", 1),
            Parameter("env"),
            Parameter("size"),
            Parameter("name", "str", None, required=True),
        )
    )
    assert factory_arguments(path) == FactoryArguments(endpoint, Signature((), takes_any=True))
    assert endpoint.value("instances", "3") == 3
    taken = "it takes kind, instances, env, size, name"
    for name, text, reported in (
        ("instance", "3", f"endpoint_factory takes no argument 'instance'; {taken}. Did you mean instances?"),
        ("instances", "x", "endpoint_factory's instances: expected int, not 'x'."),
    ):
        with pytest.raises(BenchmarkError) as refused:
            endpoint.value(name, text)
        assert str(refused.value) == reported


def test_functions_of_a_module_beside_the_file_are_found(tmp_path: Path) -> None:
    (tmp_path / "base.py").write_text("def made(a=1): yield\ndef payload_factory(b): pass\n")
    (tmp_path / "between.py").write_text("from base import *\nfrom base import made as endpoint_factory\n")
    path = tmp_path / "mine.py"
    path.write_text("from between import endpoint_factory, payload_factory\n")
    found = factory_arguments(path)
    assert found.endpoint == Signature((Parameter("a", None, 1),))
    assert found.payload == Signature((Parameter("b", required=True),))
    path.write_text("from elsewhere import endpoint_factory\n")
    assert factory_arguments(path) == FactoryArguments(None, None)
    path.write_text("def (:\n")
    with pytest.raises(BenchmarkError, match="line 1: not valid Python"):
        factory_arguments(path)
