"""`benchmark factory`: every shipped example is listed, found by its name and can be copied as it is."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker import cli
from inference_benchmarker.cli.core.examples import Example, find, listing, shipped
from inference_benchmarker.errors import BenchmarkError
from tests.conftest import ROOT
from tests.mentions import mentions

if TYPE_CHECKING:
    from collections.abc import Iterator

FACTORIES = ROOT / "factories"
NAMES = ["http/factories_get", "http/factories_post", "kserve/factories_get", "sagemaker/factories_cnn", "tabular"]
EXAMPLES = [Example(name, Path(f"{name}.py"), "About it.") for name in NAMES]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("http/factories_get", "http/factories_get"),
        ("http/factories_get.py", "http/factories_get"),
        ("factories/http/factories_get.py", "http/factories_get"),
        ("./factories/kserve/factories_get.py", "kserve/factories_get"),
        ("factories_cnn", "sagemaker/factories_cnn"),
        ("factories_cnn.py", "sagemaker/factories_cnn"),
        ("cnn", "sagemaker/factories_cnn"),
        ("sagemaker/cnn", "sagemaker/factories_cnn"),
        ("kserve/get", "kserve/factories_get"),
        ("tabular", "tabular"),
    ],
)
def test_a_name_may_be_short_where_it_is_the_only_one(name: str, found: str) -> None:
    assert find(name, EXAMPLES).name == found


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("get", "There are several examples 'get'. Give one of http/factories_get or kserve/factories_get."),
        ("factories_get.py", "There are several examples 'factories_get.py'. Give one of http/factories_get or "),
        ("htt", "There is no example 'htt'. Did you mean http/factories_get or http/factories_post?"),
        ("cmn", "There is no example 'cmn'. Did you mean sagemaker/factories_cnn?"),
        ("sagemaker/cn", "There is no example 'sagemaker/cn'. Did you mean sagemaker/factories_cnn"),
        ("http/factories_pots", "There is no example 'http/factories_pots'. Did you mean http/factories_post"),
        ("zzzzzz", "There is no example 'zzzzzz'. `benchmark factory` lists those there are."),
        ("", "There is no example ''. `benchmark factory` lists those there are."),
    ],
)
def test_an_unknown_or_ambiguous_name_is_answered_with_the_nearest(name: str, said: str) -> None:
    with pytest.raises(BenchmarkError) as raised:
        find(name, EXAMPLES)
    assert str(raised.value).startswith(said)


def test_of_many_that_may_be_meant_some_are_named() -> None:
    with pytest.raises(BenchmarkError, match=r"have that in their names: .*, and others; `benchmark factory` lists"):
        find("sagemaker", shipped())


def test_files_that_are_no_example_are_not_listed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "__init__.py").write_text('"""A package."""\n')
    (tmp_path / "a" / "factories_one.py").write_text('"""First line.\n\nMore."""\ndef payload_factory(): ...\n')
    (tmp_path / "plain.py").write_text("def payload_factory(): ...\n")
    found = shipped(tmp_path)
    assert [(example.name, example.about) for example in found] == [("a/factories_one", "First line."), ("plain", "")]
    assert listing(found) == "   a/factories_one\n      First line.\n   plain\n"


def test_every_shipped_example_is_listed_with_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["factory"]) == 0
    lines = capsys.readouterr().out.splitlines()
    there = sorted(FACTORIES.glob("*/factories_*.py"))
    names = [path.relative_to(FACTORIES).with_suffix("").as_posix() for path in there]
    named = [number for number, line in enumerate(lines) if not line.startswith(" " * 4)]
    assert [lines[number].strip() for number in named] == names
    assert all(lines[number + 1].startswith(" " * 6) for number in named)
    assert max(map(len, lines)) <= 80


def test_a_copy_of_an_example_needs_nothing_beside_it() -> None:
    """A user copies one file: what it imports is installed, and neither a neighbour nor part of ``factories``."""
    neighbours = {path.stem for path in FACTORIES.rglob("*")} | {"factories"}
    missing = neighbours - {"openai", "grpc", "tritonclient", "kserve"} - sys.stdlib_module_names
    assert [(each.name, name) for each in shipped() for name in imports(each.path) if name in missing] == []


def imports(path: Path) -> Iterator[str]:
    """The top-level modules that a file imports; ``""`` for a relative one."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "factories" if node.level else (node.module or "").partition(".")[0]


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_what_is_printed_is_the_file_to_the_byte(locale: str, tmp_path: Path) -> None:
    """From any folder, and from the package's data: the clone's own folder is not the current one."""
    example = shipped()[0]
    line = [sys.executable, "-P", "-m", "inference_benchmarker.cli", "factory", example.name]
    environment = {"PYTHONPATH": str(ROOT), "LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert done.stdout == example.path.read_bytes()


def test_an_unknown_name_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["factory", "factories_dmo"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("benchmark: There is no example 'factories_dmo'. Did you mean demo/factories_demo")


def test_help_of_an_example_lists_its_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["factory", "openai_compatible/factories_chat", "--help"]) == 0
    reported = capsys.readouterr().out
    assert reported.startswith(
        "Chat completions in one piece, of any server with an OpenAI-compatible API:\nlatency, tokens.\n\n"
    )
    assert "   MODEL = demo\n      a name that URL/v1/models lists\n" in reported
    assert mentions(reported, "--factories-file", "openai_compatible/factories_chat")
    assert "      --set URL=http://127.0.0.1:8080 --client-rps 10 --obs-time 60\n" in reported
    assert "   WORDS = " not in reported
    assert cli.main(["factory", "nothing_of_the_kind", "--help"]) == 2


def test_an_example_without_settings_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["factory", "lambda_function", "-h"]) == 0
    reported = capsys.readouterr().out
    assert "It has no settings: copy it, and change what you need." in reported
    assert "      --endpoint-name NAME --client-rps 10 --obs-time 60\n" in reported
