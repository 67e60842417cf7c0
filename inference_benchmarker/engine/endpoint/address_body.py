"""The body of a request to an address: a text, or a file of one body or many."""

from __future__ import annotations

import json
import mimetypes
from contextlib import suppress
from pathlib import Path

from inference_benchmarker.engine.endpoint.address_options import JSON
from inference_benchmarker.plan.endpoint_problems import instead_of_a_file
from inference_benchmarker.system.files import kind_of
from inference_benchmarker.system.given import resolved
from inference_benchmarker.words.wording import pluralize

_LINES = (".jsonl", ".ndjson")
_MOST_LOOKED_AT = 1 << 20


def body_settings(text: str, problems: list[str]) -> dict[str, str]:
    """The setting of a body: the text itself, or the file that it names."""
    if not text.startswith("@"):
        return {"BODY": text}
    file = Path(text[1:])
    with suppress(RuntimeError):  # nobody has that home
        file = file.expanduser()
    if text == "@-":
        problems.append("--body @-: standard input is not read; give a file, as in --body @request.json.")
    elif kind_of(file) != "file":
        problems.append(f"--body {text}: {instead_of_a_file(file)}. Give a body that is not a file without @.")
    elif reason := _unreadable(file):
        problems.append(f"--body {text}: cannot be read ({reason}).")
    return {"BODY_FILE": str(resolved(file))}


def _unreadable(file: Path) -> str:
    """The system's words on a file that cannot be read; nothing of one that can."""
    try:
        with file.open("rb") as opened:
            opened.read(1)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def shown_body(body: dict[str, str]) -> str:
    """The size of a body, or the name of its file, as the line that describes the endpoint has it."""
    if "BODY" in body:
        return f"a body of {pluralize(len(body['BODY'].encode()), 'byte', 'bytes')}"
    file = Path(body["BODY_FILE"])
    return f"each line of {file.name} in turn" if file.suffix in _LINES else file.name


def content_type_of(body: dict[str, str]) -> str:
    """The content type of a body: JSON where it is that, else as the file's name or being a text says."""
    if "BODY" in body:
        return JSON if _is_json(body["BODY"]) else "text/plain; charset=utf-8"
    file = Path(body["BODY_FILE"])
    if file.suffix in _LINES:
        return JSON
    by_name, _ = mimetypes.guess_type(file.name)
    if by_name or kind_of(file) != "file" or _unreadable(file):
        return by_name or JSON
    with file.open("rb") as opened:
        return JSON if _is_json(opened.read(_MOST_LOOKED_AT)) else "application/octet-stream"


def _is_json(text: str | bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
