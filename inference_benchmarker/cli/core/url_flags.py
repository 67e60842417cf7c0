"""The flags that describe an endpoint without a file of one's own: what is sent to its address."""

from __future__ import annotations

import re

from inference_benchmarker.answer_size import DEFAULT_ANSWER_SIZE
from inference_benchmarker.cli.core.chat_flags import CHAT_FLAGS
from inference_benchmarker.cli.core.flags import Flag, parse_int, parse_path, parse_size
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.words.redact import quoted
from inference_benchmarker.words.text import is_utf8
from inference_benchmarker.words.wording import size_text

SECRET = re.compile(r"KEY|TOKEN(?!S)|SECRET|PASSWORD|CREDENTIAL")
"""The names of settings whose values are not stored."""

_IN_A_FILE = " Bytes are given in a file: --body @FILE."


def _setting(_: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise BenchmarkError(f"--set must be NAME=VALUE, not {quoted(text)}.")
    if SECRET.search(name.upper()):
        raise BenchmarkError(f"--set {name.strip()}: its value would be stored; pass a secret in the environment.")
    return name.strip(), _text(f"--set {name.strip()}", value)


def _text(flag: str, text: str) -> str:
    if not is_utf8(text):
        raise BenchmarkError(f"{flag} has a byte that is not UTF-8.{_IN_A_FILE if flag == '--body' else ''}")
    return text


FACTORIES_FILE = Flag(
    "--factories-file",
    "FILE",
    "Python file that calls the endpoint; it defines invoke_factory, and payload_factory or session_factory",
    parse_path,
)
SET_FLAG = Flag(
    "--set",
    "NAME=VALUE",
    "override a constant of the factories file (repeatable): MODEL=llama here, or BENCHMARK_MODEL=llama in the "
    "environment. `benchmark factory EXAMPLE --help` lists the constants of an example",
    _setting,
    sets="factory_settings",
    repeatable=True,
)
MAX_ANSWER_SIZE = Flag(
    "--max-answer-size",
    "SIZE",
    f"fail a request whose answer is larger: 64MiB, 1GB (default {size_text(DEFAULT_ANSWER_SIZE)})",
    parse_size,
)
URL_FLAGS = [
    Flag(
        "--body",
        "TEXT|@FILE",
        "request body for a URL; with a .jsonl file, each request sends the next line",
        _text,
    ),
    Flag(
        "--header",
        "'K: V'",
        "request header for a URL (repeatable); $VAR in it is read from the environment and never stored",
        repeatable=True,
    ),
    Flag("--method", "M", "HTTP method for a URL (default: GET, or POST with a --body)", _text),
    Flag(
        "--content-type",
        "T",
        "content type of the --body (default: JSON if it is JSON, else from the file's name)",
        _text,
    ),
    Flag("--model", "NAME", "model of an OpenAI-compatible server (default: the only one served)", _text),
    Flag("--prompt", "TEXT", "prompt of each LLM request (default: synthetic words, different in each request)", _text),
    Flag(
        "--input-tokens", "N", "length of a synthetic prompt, counted as one token per word (default: 200)", parse_int
    ),
    Flag("--output-tokens", "N", "maximum number of tokens in an answer (default: 128)", parse_int),
    *CHAT_FLAGS,
]
ASKED = [flag for flag in URL_FLAGS if flag.name != "header"]
"""Those that an address is described by."""
