"""An endpoint without a file of one's own: its address, with the flags that go with it, or a shipped example's name.

Both become a factories file and its settings, so that whatever takes a factories file takes these, too.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.answer_size import DEFAULT_ANSWER_SIZE
from inference_benchmarker.cli.core.flags import Flag, parse_int, parse_path, parse_size, read_flags
from inference_benchmarker.cli.core.header_flags import headers_of, of_environment, of_user
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.conversation import FRESH, SharedPrefix, TurnCount, new_salt
from inference_benchmarker.plan.media import Audio, Images
from inference_benchmarker.plan.model_mix import ModelMix
from inference_benchmarker.system.packaged import HTTP_FILE, packaged
from inference_benchmarker.url import ADDRESS_SETTINGS, endpoint_address
from inference_benchmarker.words.redact import HEADERS, quoted
from inference_benchmarker.words.text import is_utf8
from inference_benchmarker.words.wording import size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping, Sequence

    from inference_benchmarker.engine.endpoint.addressed import AddressOptions, Described

VARIABLE = "BENCHMARK_"
"""What stands before a setting's name in the environment."""

_NO_SETTINGS = (HEADERS, "BENCHMARK_API_KEY", "BENCHMARK_DEMO_URL")
_KEYS = ("BENCHMARK_API_KEY", "OPENAI_API_KEY")
_SECRET = re.compile(r"KEY|TOKEN(?!S)|SECRET|PASSWORD|CREDENTIAL")
_IN_A_FILE = " Bytes are given in a file: --body @FILE."
_HOST = r"(\[[\da-f:]+\]|[\w-]+(\.[\w-]+)*)"
HISTORIES = ("live", "recorded")
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_ADDRESS = re.compile(rf"[a-z+]{{2,12}}:/|{_HOST}:\d+(/|$)|localhost(/|$)", re.IGNORECASE)


def _setting(_: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise BenchmarkError(f"--set must be NAME=VALUE, not {quoted(text)}.")
    if _SECRET.search(name.upper()):
        raise BenchmarkError(f"--set {name.strip()}: its value would be stored; pass a secret in the environment.")
    return name.strip(), _text(f"--set {name.strip()}", value)


def _text(flag: str, text: str) -> str:
    if not is_utf8(text):
        raise BenchmarkError(f"{flag} has a byte that is not UTF-8.{_IN_A_FILE if flag == '--body' else ''}")
    return text


def _history(_: str, text: str) -> str:
    if text not in HISTORIES:
        raise BenchmarkError(f"--history must be {' or '.join(HISTORIES)}, not {quoted(text)}.")
    return text


def _header_name(_: str, text: str) -> str:
    if not HEADER_NAME.fullmatch(text):
        raise BenchmarkError(f"--session-header must be the name of a header, X-Session-Id, not {quoted(text)}.")
    return text


SET_FLAG = Flag(
    "--set",
    "NAME=VALUE",
    "set a constant of the factories file, repeatable: MODEL=llama; `benchmark factory NAME --help` lists those of"
    " an example; also read from BENCHMARK_NAME in the environment",
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
MODEL_MIX = Flag(
    "--model-mix",
    "A=3,B=1",
    "models that requests ask for, such as LoRA adapters, with their weights; all turns of a conversation ask the same,"
    " and the report has a row for each",
    lambda _, text: ModelMix.parse(text),
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
        "request header for a URL, repeatable; $VAR in it is read from the environment and never stored",
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
    Flag("--prompt", "TEXT", "prompt for this model (default: synthetic words, different in each request)", _text),
    Flag(
        "--input-tokens", "N", "length of a synthetic prompt, counted as one token per word (default: 200)", parse_int
    ),
    Flag("--output-tokens", "N", "maximum number of tokens in an answer (default: 128)", parse_int),
    Flag(
        "--turns",
        "N",
        "conversations of N turns with such a server, each turn with all earlier ones: 5, uniform:3..8, "
        "geometric:4; --client-rps counts conversations, --think-time is the time between turns",
        lambda _, text: TurnCount.parse(text),
    ),
    Flag(
        "--shared-prefix",
        "TOKENS",
        "with --turns, a system prompt of so many tokens that groups of conversations share: 4000, "
        "4000:groups=20:zipf=1.1",
        lambda _, text: SharedPrefix.parse(text),
    ),
    Flag(
        "--history",
        "KIND",
        "with --turns, the earlier answers that a later turn repeats: live, as received (default), or recorded, "
        "synthetic ones of --output-tokens",
        _history,
    ),
    Flag("--session-header", "NAME", "with --turns, a request header that carries the conversation id", _header_name),
    Flag(
        "--image",
        "WxH[:N]",
        "N images of this size in each chat, made anew for each request: 512x512, 512x512:2, 512x512:share=30%",
        lambda _, text: Images.parse(text),
    ),
    Flag(
        "--audio",
        "S",
        "a sound of S seconds (WAV) in each chat, made anew for each request: 5s, 5s:share=30%",
        lambda _, text: Audio.parse(text),
    ),
]
_PROMPTS = ("conversations", "turns", "body", "prompt", "input_tokens", "image", "audio")
"""Flags that say what is sent to a model."""
_ASKED = [flag for flag in URL_FLAGS if flag.name != "header"]


def looks_like_address(word: str) -> bool:
    """Tells whether a bare word of the command line is meant as an address."""
    return _ADDRESS.match(word) is not None


def without_addresses(arguments: list[str], flags: Mapping[str, Flag]) -> tuple[list[str], list[str]]:
    """The arguments without the bare addresses among them, and those."""
    rest: list[str] = []
    found: list[str] = []
    takes = False
    for argument in arguments:
        bare = not takes and not argument.startswith("-") and looks_like_address(argument)
        (found if bare else rest).append(argument)
        flag = flags.get(argument.removeprefix("--").replace("-", "_"))
        takes = argument.startswith("--") and "=" not in argument and (flag is None or flag.metavar is not None)
    return rest, found


def take_endpoint(
    options: dict[str, Any], problems: list[str], addresses: list[str], environment: MutableMapping[str, str]
) -> Described | None:
    """Make an address, or an example's name, a factories file with settings; those of the environment are added.

    Headers go to the environment, where the processes that send find them.
    """
    if len(addresses) > 1:
        problems.append(f"Give one URL, not {len(addresses)}.")
    described = None
    if addresses and options.get("locust_file") and options["url"] is None:
        options["url"] = addresses.pop()  # the host of its users
    if is_addressed(options, addresses):
        described = _of_address(addresses[0] if addresses else options["url"], options, problems, environment)
    else:
        _take_file(options, problems, environment)
    if options["factories_file"] is not None:
        settings = [*_of_environment(Path(options["factories_file"]), environment), *(options["set"] or ())]
        options["set"] = settings or None
    return described


def is_addressed(options: Mapping[str, Any], addresses: Sequence[str]) -> bool:
    """Tells whether an address names the endpoint: a bare one, or ``--url`` where nothing else does."""
    others = ("factories_file", "locust_file", "aiperf_only", "demo")
    return bool(addresses) or (options.get("url") is not None and not any(options.get(name) for name in others))


def _of_address(
    text: str, options: dict[str, Any], problems: list[str], environment: MutableMapping[str, str]
) -> Described | None:
    """Parse the flags of an address, resolve what it is, and apply that to the options; None where it is no good."""
    from inference_benchmarker.engine.endpoint.addressed import AddressOptions, describe

    problems += _contradictions(options)
    _take_conversations(text, options)
    asked = AddressOptions(
        **read_flags(_ASKED, options, problems).values,
        recorded=options.get("conversations"),
        cache=FRESH if options.get("cache") == FRESH else None,
    )
    own = headers_of(options["header"] or (), environment, problems)
    headers = {**of_environment(environment, problems), **own}
    described = None
    try:
        address = endpoint_address(text)
        headers = {**headers, **of_user(address), **own}
        described = describe(address, asked, problems)
        if options.get("model_mix") is not None:
            described = _with_mix(described, asked, options["model_mix"], problems)
        if described.models is not None and not problems:
            described = _with_its_model(described, headers, environment)
    except BenchmarkError as error:
        problems.append(str(error))
    if headers:
        environment[HEADERS] = json.dumps(headers)
    if described is not None and described.is_seeded:
        described = described.with_seed(options.get("seed"))
    _apply(described, options, problems)
    return None if problems else described


def _take_conversations(text: str, options: dict[str, Any]) -> None:
    """Send the conversations of a recording that is replayed to a chat, unless flags say what is sent."""
    if not options.get("replay") or any(options.get(name) for name in _PROMPTS):
        return
    from inference_benchmarker.engine.endpoint.addressed import is_of_chats
    from inference_benchmarker.recording.conversations.reading import are_in

    try:
        if is_of_chats(endpoint_address(text)) and are_in(parse_path("--replay", options["replay"])):
            options["conversations"] = options["replay"]
    except BenchmarkError:  # which is told of the address, and of the recording, in their places
        return


def _with_mix(described: Described, asked: AddressOptions, mix: str, problems: list[str]) -> Described:
    """The same with its models named by a mix, which is sent with each request."""
    if asked.model is not None:
        problems.append("Give either --model or --model-mix, not both.")
    if not described.is_model:
        problems.append("--model-mix: only for OpenAI's API, at a URL that ends in /v1.")
    return described._replace(models=None, words=f"{described.words}, models {mix}")


def _contradictions(options: Mapping[str, Any]) -> Iterator[str]:
    """The flags that an address leaves no room for."""
    for name in ("factories_file", "locust_file", "demo", "endpoint_name"):
        if options.get(name):
            yield f"Give either a URL or {_flag(name)}, not both."
    if options["header"] and _is_for_aiperf(options):
        yield "--header: aiperf would show it among its arguments; leave one of them out."


def _apply(described: Described | None, options: dict[str, Any], problems: list[str]) -> None:
    """Put the file and the settings of an address into the options; where none is known, another stands for the file.

    So that no file is missing beside what is wrong with the address.
    """
    if not options["factories_file"] and not options.get("locust_file"):
        options["factories_file"] = str(packaged("factories", described.file if described else HTTP_FILE))
    settings = described.settings if described else {}
    told = (text.partition("=")[0].strip() for text in options["set"] or ())
    problems += [
        f"--set {name}: the URL already sets it; change it there."
        for name in told
        if name in ADDRESS_SETTINGS and settings
    ]
    options["set"] = [*(f"{name}={value}" for name, value in settings.items()), *(options["set"] or ())]
    options["url"] = described.server if described and _is_for_aiperf(options) else None


def _is_for_aiperf(options: Mapping[str, Any]) -> bool:
    return bool(options.get("aiperf") or options.get("aiperf_only"))


def _with_its_model(described: Described, headers: Mapping[str, str], environment: Mapping[str, str]) -> Described:
    from inference_benchmarker.engine.endpoint.served_models import only_model

    assert described.models is not None
    key = next((environment[name] for name in _KEYS if environment.get(name)), None)
    authorization = {} if key is None else {"Authorization": f"Bearer {key}"}
    return described.with_model(only_model(described.models, {**authorization, **headers}))


def _take_file(options: dict[str, Any], problems: list[str], environment: MutableMapping[str, str]) -> None:
    """Find the example that is named, and hand it headers where it reads them; flags of an address are problems."""
    stray = [flag.flag for flag in _ASKED if options[flag.name] is not None]
    if options["factories_file"] is not None:
        before = len(problems)
        options["factories_file"] = _file_of(options["factories_file"], problems)
        if len(problems) > before:
            options["set"] = None  # nobody knows the settings of what is not there
    if options.get("cache") == FRESH:
        _salt(options, problems)
    if options["header"]:
        if options["factories_file"] is not None and HEADERS in _source(options["factories_file"]):
            own = headers_of(options["header"], environment, problems)
            environment[HEADERS] = json.dumps({**of_environment(environment, problems), **own})
        else:
            stray.append("--header")
    if stray:
        instead = "" if options["factories_file"] is None else "; for a factories file, use --set"
        problems.append(f"{', '.join(stray)}: only for a URL, as in `benchmark URL`{instead}.")


def _salt(options: dict[str, Any], problems: list[str]) -> None:
    """Set the SALT of a file that has one, so that no earlier run's cache helps."""
    from inference_benchmarker.engine.endpoint.settings import settings_of

    file = options["factories_file"]
    if file is None or "SALT" not in settings_of(Path(file)):
        problems.append("--cache fresh: for conversations at an address, or a file with a constant SALT.")
    else:
        options["set"] = [*(options["set"] or ()), f"SALT={new_salt()}"]


def _file_of(text: str, problems: list[str]) -> str:
    """A file's path; the shipped example's where it is no file, but the name of one."""
    try:
        if not text.strip() or text.endswith(".py") or Path(text).expanduser().exists():
            return text
    except (OSError, ValueError, RuntimeError):  # told as a file that is not there
        return text
    from inference_benchmarker.cli.core.examples import find, shipped

    try:
        return str(find(text, shipped()).path)
    except BenchmarkError as error:
        problems.append(f"--factories-file {text}: there is no such file, and no such example. {error.hint}")
        return str(packaged("factories", HTTP_FILE))  # in its place, so that none is missing


def _source(file: str) -> str:
    try:
        return Path(file).expanduser().read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError, RuntimeError):
        return ""


def _of_environment(file: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """The settings that the environment has for a file, as ``--set`` has them."""
    names = [name for name in environment if name.startswith(VARIABLE) and name not in _NO_SETTINGS]
    if not names:
        return
    from inference_benchmarker.engine.endpoint.settings import settings_of

    for name in settings_of(file):
        if VARIABLE + name in names and not _SECRET.search(name):
            yield f"{name}={environment[VARIABLE + name]}"


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
