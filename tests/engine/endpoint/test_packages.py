"""The pip line of a module that is missing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.engine.endpoint.packages import DISTRIBUTIONS, pip_line
from inference_benchmarker.engine.endpoint.source import import_file
from inference_benchmarker.errors import BenchmarkError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("openai", "'openai>=3'"),
        ("httpx2", "'openai>=3'"),
        ("pandas", "pandas"),
        ("PIL", "pillow"),
        ("PIL.Image", "pillow"),
        ("sklearn.svm", "scikit-learn"),
        ("grpc", "grpcio protobuf"),
        ("google.protobuf", "protobuf"),
        ("google.protobuf.text_format", "protobuf"),
        ("no_such.module", "no_such"),
    ],
)
def test_a_module_is_called_by_its_package(module: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, module.split(".", maxsplit=1)[0], raising=False)
    said = pip_line(ModuleNotFoundError(f"No module named {module!r}", name=module))
    assert said.endswith(f"install it: {sys.executable} -m pip install {package}")


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("of the user's own"),
        ModuleNotFoundError("a part of what is there", name="pytest.no_such_part"),
        ModuleNotFoundError("a part of a name that many packages share", name="google"),
        ImportError("cannot import name 'x'", name="json"),
        KeyError("x"),
    ],
)
def test_where_no_package_is_missing_none_is_named(error: BaseException) -> None:
    assert pip_line(error) == ""


def test_a_factories_file_that_misses_a_package_is_reported_what_to_install(tmp_path: Path) -> None:
    file = tmp_path / "endpoint_of_pictures.py"
    file.write_text("import no_such_pictures.of_mine\n")
    with pytest.raises(BenchmarkError, match=r"line 1: importing it raised .*pip install no_such_pictures$"):
        import_file(file)


@pytest.mark.parametrize(
    ("line", "package"),
    [
        ("from no_such_name.proto.buf import text_format", "whole-name"),
        ("import no_such_name.proto", "whole-name"),
        ("import no_such_name.other", "no_such_name"),
    ],
)
def test_the_package_is_that_of_the_whole_name_which_was_asked_for(
    line: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DISTRIBUTIONS, "no_such_name.proto", "whole-name")
    file = tmp_path / "endpoint_of_a_namespace.py"
    file.write_text(f"{line}\n")
    with pytest.raises(BenchmarkError, match=rf"-m pip install {package}$"):
        import_file(file)


def test_every_module_of_the_table_has_a_package_of_another_name() -> None:
    assert all(module != package for module, package in DISTRIBUTIONS.items())
