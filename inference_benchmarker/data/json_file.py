"""JSON files of this tool: written whole, and read back by what they say of themselves, whoever wrote them."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.digest import KEY, digest_of
from inference_benchmarker.data.json_text import MOST_BYTES, parse_json
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.files import read_bytes, replace_file, without_secrets
from inference_benchmarker.version import SCHEMA_VERSION
from inference_benchmarker.words.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What reading values of another shape than ours raises."""
FOREIGN = "cannot be read as a file of this tool"


def write_json(path: Path, data: dict[str, Any], inside: Path | None = None) -> None:
    """Write a JSON object so that a reader sees the old file or the whole new one."""
    replace_file(path, json.dumps(data, indent=2, allow_nan=False) + "\n", inside)


def write_with_digest(path: Path, data: dict[str, Any], inside: Path | None = None) -> str:
    """``write_json`` with a digest, which is returned: of what the file holds, so without the values of secrets."""
    content = json.loads(without_secrets(json.dumps(data, allow_nan=False)))
    digest = digest_of(content)
    write_json(path, {**content, KEY: digest}, inside)
    return digest


def read_json(path: Path, inside: Path | None = None) -> dict[str, Any]:
    """Read a JSON object of ours; a newer schema or a damaged file is said. ``inside``: see ``files.opened``."""
    try:
        data = parse_json(read_bytes(path, MOST_BYTES, inside))
        version = data["schema_version"]
        if type(version) is not int or version < 1:
            raise ValueError(f"its schema_version is {one_line(repr(version), 20)}, and the first one is 1")
    except (OSError, *UNREADABLE) as error:
        raise foreign(path, error) from None
    if version > SCHEMA_VERSION:
        raise BenchmarkError(
            f"{path}: has schema version {version}; this tool knows {SCHEMA_VERSION}.", "Update the tool."
        )
    return dict(data)


def foreign(path: Path, error: Exception) -> BenchmarkError:
    """The error of a file whose content is not what this tool writes, in one sentence."""
    if isinstance(error, KeyError):
        reason = f"{one_line(str(error), 40)} is missing"
    elif isinstance(error, OSError):
        reason = error.strerror or one_line(str(error), 200)
    elif isinstance(error, (AttributeError, TypeError)):
        reason = f"a value is of another type than it writes: {one_line(str(error), 100)}"
    else:
        reason = one_line(str(error), 200) or type(error).__name__
    return cannot_read(path, f"{FOREIGN} ({reason})")


@contextmanager
def foreign_content_of(path: Path) -> Iterator[None]:
    """Whatever its content raises while it is looked at is the error of that file."""
    try:
        yield
    except UNREADABLE as error:
        raise foreign(path, error) from None


def cannot_read(path: Path, what: str) -> BenchmarkError:
    """The error of a file; ``what``: the problem."""
    return BenchmarkError(f"{path}: {what}.", "Give a run directory as this tool left it.")
