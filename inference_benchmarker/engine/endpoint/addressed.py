"""An endpoint as its address alone describes it: the shipped factories file that sends to it, and its settings."""

from __future__ import annotations

import json
import mimetypes
import re
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from inference_benchmarker.plan.conversation import FRESH, new_salt
from inference_benchmarker.system.files import kind_of
from inference_benchmarker.system.packaged import HTTP_FILE
from inference_benchmarker.url import SEED_SETTING
from inference_benchmarker.words.redact import quoted
from inference_benchmarker.words.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator
    from urllib.parse import SplitResult

    from inference_benchmarker.plan.conversation import SharedPrefix, TurnCount
    from inference_benchmarker.plan.media import Audio, Images

OPENAI_FILE = "openai_compatible/factories_by_url.py"
CONVERSATIONS_FILE = "conversations/factories_by_url.py"
RECORDED_FILE = "conversations/factories_recorded.py"
RERANK_FILE = "openai_compatible/factories_rerank.py"
RESPONSES_FILE = "openai_compatible/factories_responses_stream.py"
JSON = "application/json"

_CHAT, _RESPONSES, _RERANK = "chat", "responses", "rerank"
_ROUTES = {
    "/chat/completions": _CHAT,
    "/completions": "completions",
    "/embeddings": "embeddings",
    "/v1/responses": _RESPONSES,
    "/rerank": _RERANK,
}
_NO_BODY = {
    "folder": "this is a folder; give a file in it",
    "something else": "this is a pipe or a device, which two processes cannot both read; give a file",
    None: "there is no such file",
}
_LINES = (".jsonl", ".ndjson")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_MOST_LOOKED_AT = 1 << 20
_OF_SESSIONS = ("shared_prefix", "history", "session_header", "cache")
_OF_MEDIA = ("image", "audio")
_OF_MODELS = ("model", "prompt", "input_tokens", "output_tokens", "turns", *_OF_SESSIONS, "recorded", *_OF_MEDIA)


@dataclass(frozen=True, slots=True)
class AddressOptions:
    """The flags that go with an address; None: not given. ``recorded``: the file of conversations that are sent."""

    body: str | None = None
    method: str | None = None
    content_type: str | None = None
    model: str | None = None
    prompt: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    turns: TurnCount | None = None
    shared_prefix: SharedPrefix | None = None
    history: str | None = None
    session_header: str | None = None
    cache: str | None = None
    recorded: str | None = None
    image: Images | None = None
    audio: Audio | None = None

    def given(self, *names: str) -> list[str]:
        """Those of these flags that were given."""
        flags = (f"--{'conversations' if name == 'recorded' else name.replace('_', '-')}" for name in names)
        return [flag for flag, name in zip(flags, names, strict=True) if getattr(self, name) is not None]


class Described(NamedTuple):
    """The file's name below ``factories/``, its settings, and the requests in words.

    ``server``: the address without a path. ``models``: where it lists its models, if one has still to be named.
    """

    file: str
    settings: dict[str, str]
    words: str
    server: str
    models: str | None = None

    @property
    def is_model(self) -> bool:
        """Tells whether a language model answers, which takes its time."""
        return self.file != HTTP_FILE

    @property
    def is_seeded(self) -> bool:
        """Tells whether what is sent is drawn with a seed: conversations, images, audio."""
        has_media = "IMAGE" in self.settings or "AUDIO" in self.settings
        return has_media or self.file in (CONVERSATIONS_FILE, RECORDED_FILE)

    def with_seed(self, seed: str | None) -> Described:
        """The same with the seed of what it draws: the one given, or a new one, so that no wave repeats another's."""
        drawn = str(secrets.randbelow(1 << 32)) if seed is None else seed
        return self._replace(settings={**self.settings, SEED_SETTING: drawn})

    def with_model(self, name: str) -> Described:
        """The same with its model named."""
        words = f"{self.words}, model {name}"
        return self._replace(settings={**self.settings, "MODEL": name}, words=words, models=None)


def is_of_chats(address: SplitResult) -> bool:
    """Tells whether an address is one of OpenAI's chat API."""
    path = address.path.rstrip("/")
    return path.endswith(("/v1", "/chat/completions"))


def describe(address: SplitResult, asked: AddressOptions, problems: list[str]) -> Described:
    """The endpoint of an address and its flags; ``problems`` gets what is wrong with them."""
    server, path = f"{address.scheme}://{address.netloc.rpartition('@')[2]}", address.path.rstrip("/")
    route = next((route for route in _ROUTES if path.endswith(route)), "")
    is_api = bool(route) or path.endswith("/v1")
    if (asked.method or "POST").upper() == "POST" and asked.content_type is None and is_api:
        api = _ROUTES.get(route, _CHAT)
        if api == _RERANK:
            if asked.body is None and not address.query:
                return _rerank(server, path.removesuffix(route), asked, problems)
            return _http(server, address, asked, problems)
        if api != _RESPONSES:
            return _openai(api, address._replace(netloc=server, path=path.removesuffix(route)), asked, problems)
        if asked.body is None and not address.query:
            return _responses(server, path.removesuffix(route), asked, problems)
    return _http(server, address, asked, problems)


def _openai(api: str, base: SplitResult, asked: AddressOptions, problems: list[str]) -> Described:
    problems += _conflicts(api, asked)
    server, path, query = base.netloc, base.path, base.query
    if asked.turns is not None or asked.recorded is not None:
        return _conversations(asked.turns, base, asked)
    settings = {"URL": server, "BASE_PATH": path, "API": api, "MODEL": asked.model or ""}
    settings |= {"QUERY": query} if query else {}
    settings |= _body(asked.body, problems) if asked.body is not None else {}
    media = {"IMAGE": asked.image, "AUDIO": asked.audio}
    settings |= {name: each.text for name, each in media.items() if each is not None}
    settings |= {
        name.upper(): str(value)
        for name in ("prompt", "input_tokens", "output_tokens")
        if (value := getattr(asked, name)) is not None
    }
    named = {"chat": "streaming chat completions", "completions": "streaming completions", "embeddings": "embeddings"}[
        api
    ]
    told = "".join(f", {name.lower()} {each.text}" for name, each in media.items() if each is not None)
    words = f"{server}{path}: {named}{_sizes(api, asked)}{told}"
    found = Described(OPENAI_FILE, settings, words, server, models=f"{server}{path}/models")
    if asked.model is not None:
        return found.with_model(asked.model)
    return found if asked.body is None else found._replace(models=None)  # a body names its model itself, or need not


def _conversations(turns: TurnCount | None, base: SplitResult, asked: AddressOptions) -> Described:
    prefix = asked.shared_prefix
    told = {
        "QUERY": base.query or None,
        "INPUT_TOKENS": asked.input_tokens,
        "OUTPUT_TOKENS": asked.output_tokens,
        "SHARED_PREFIX": None if prefix is None else prefix.text,
        "HISTORY": asked.history,
        "SESSION_HEADER": asked.session_header,
        "SALT": new_salt() if asked.cache == FRESH else None,
    }
    server = f"{base.netloc}{base.path}"
    settings = {"URL": base.netloc, "BASE_PATH": base.path, "MODEL": asked.model or ""}
    settings |= {"TURNS": turns.text} if turns is not None else {}
    settings |= {name: str(value) for name, value in told.items() if value is not None}
    file, what = RECORDED_FILE, f"the conversations of {Path(asked.recorded or '').name}"
    if turns is not None:
        file, what = CONVERSATIONS_FILE, f"conversations of {turns.text} turns"
    words = f"{server}: streaming {what}{_sizes(_CHAT, asked) if turns is not None else ''}"
    found = Described(file, settings, words, base.netloc, models=f"{server}/models")
    return found if asked.model is None else found.with_model(asked.model)


def _responses(server: str, before: str, asked: AddressOptions, problems: list[str]) -> Described:
    problems += _conflicts(_RESPONSES, asked)
    sizes = {"PROMPT": asked.prompt, "PROMPT_WORDS": asked.input_tokens, "MAX_TOKENS": asked.output_tokens}
    settings = {"URL": server + before, **{name: str(value) for name, value in sizes.items() if value is not None}}
    words = f"{server}{before}/v1: streaming responses{_sizes(_RESPONSES, asked)}"
    found = Described(RESPONSES_FILE, settings, words, server, models=f"{server}{before}/v1/models")
    return found if asked.model is None else found.with_model(asked.model)


def _rerank(server: str, before: str, asked: AddressOptions, problems: list[str]) -> Described:
    """TEI's where nothing stands before /rerank, else that of Jina, Cohere, vLLM and others."""
    if stray := asked.given("prompt", "output_tokens", "turns", *_OF_SESSIONS, *_OF_MEDIA):
        problems.append(f"{', '.join(stray)}: reranking has queries and texts of --input-tokens; leave them out.")
    if asked.input_tokens is not None and asked.input_tokens < 1:
        problems.append(f"--input-tokens must be at least 1, not {asked.input_tokens}.")
    is_tei = not before
    sizes = {} if asked.input_tokens is None else {"TEXT_WORDS": str(asked.input_tokens)}
    settings = {"URL": server, "BASE_PATH": before, "TEI": str(is_tei).lower(), "MODEL": asked.model or "", **sizes}
    words = f"{server}{before}/rerank: reranking of 8 texts, {asked.input_tokens or 100:,} tokens each"
    if is_tei and asked.model is not None:
        problems.append("--model: TEI's /rerank has one model, and is told none; leave it out.")
    found = Described(RERANK_FILE, settings, words, server, models=None if is_tei else f"{server}{before}/models")
    return found if asked.model is None else found.with_model(asked.model)


def _sizes(api: str, asked: AddressOptions) -> str:
    if asked.body is not None:
        return ""
    prompt = "one prompt" if asked.prompt is not None else f"{asked.input_tokens or 200:,} input tokens"
    return f", {prompt}" + ("" if api == "embeddings" else f", up to {asked.output_tokens or 128:,} output tokens")


def _conflicts(api: str, asked: AddressOptions) -> Iterator[str]:
    """The problems of flags that exclude each other, and of lengths that are none."""
    ways = [*asked.given("body"), *asked.given("prompt"), *asked.given("input_tokens")]
    if len(ways) > 1:
        yield f"Give either {' or '.join(ways)}."
    if asked.body is not None and asked.output_tokens is not None:
        yield "--output-tokens is not for a --body, which itself sets the length of an answer."
    if api == "embeddings" and asked.output_tokens is not None:
        yield "--output-tokens: embeddings have no output tokens; leave it out."
    yield from _session_conflicts(api, asked)
    yield from _media_conflicts(api, asked)
    if asked.input_tokens is not None and asked.input_tokens < 1:
        yield f"--input-tokens must be at least 1, not {asked.input_tokens}."
    if asked.output_tokens is not None and asked.output_tokens < 1:
        yield f"--output-tokens must be at least 1, not {asked.output_tokens}."


def _media_conflicts(api: str, asked: AddressOptions) -> Iterator[str]:
    media = asked.given(*_OF_MEDIA)
    if media and api != _CHAT:
        yield f"{', '.join(media)}: only chats have images and audio, and this is a URL of {api}."
    if media and (stray := asked.given("body", "turns", "recorded")):
        yield f"{', '.join(media)}: for single requests that the tool makes itself: leave {' and '.join(stray)} out."


def _session_conflicts(api: str, asked: AddressOptions) -> Iterator[str]:
    if asked.recorded is not None:
        yield from _recorded_conflicts(api, asked)
        return
    if asked.turns is None:
        if stray := asked.given(*_OF_SESSIONS):
            yield f"{', '.join(stray)}: only for conversations: give --turns, too."
        return
    if api != _CHAT:
        yield f"--turns: in OpenAI's API only chats have turns, and this is a URL of {api}."
    if stray := asked.given("body", "prompt"):
        yield f"--turns generates the prompts itself: leave {' and '.join(stray)} out."


def _recorded_conflicts(api: str, asked: AddressOptions) -> Iterator[str]:
    if api != _CHAT:
        yield f"--conversations: in OpenAI's API only chats have turns, and this is a URL of {api}."
    if stray := asked.given("body", "prompt", "input_tokens", "turns", "shared_prefix"):
        yield f"--conversations has the prompts: leave {' and '.join(stray)} out."


def _http(server: str, address: SplitResult, asked: AddressOptions, problems: list[str]) -> Described:
    if stray := asked.given(*_OF_MODELS):
        near = f" Did you mean {server}/v1?" if address.path in ("", "/") else ""
        problems.append(
            f"{', '.join(stray)}: only for OpenAI's API, at a URL that ends in /v1, /chat/completions, /completions, "
            f"/embeddings, /rerank or /v1/responses.{near}"
        )
    if asked.content_type is not None and asked.body is None:
        problems.append("--content-type describes a --body, and there is none.")
    if not (asked.content_type or "").isprintable():
        problems.append("--content-type has a line break or a character that no header may have.")
    method = asked.method or ("GET" if asked.body is None else "POST")
    if not _TOKEN.fullmatch(method):
        problems.append(f"--method must be one word, such as PUT, not {quoted(method)}.")
    body = _body(asked.body, problems) if asked.body is not None else {"BODY": ""}
    kind = asked.content_type or ("" if asked.body is None else _content_type(body))
    path = (address.path or "/") + (f"?{address.query}" if address.query else "")
    settings = {"SERVER": server, "PATH": path, "METHOD": method.upper(), "CONTENT_TYPE": kind, **body}
    told = f" with {_shown(body)} ({kind})" if asked.body is not None else ""
    return Described(HTTP_FILE, settings, f"{method.upper()} {server}{path}{told}", server)


def _body(text: str, problems: list[str]) -> dict[str, str]:
    """The setting of a body: the text itself, or the file that it names."""
    if not text.startswith("@"):
        return {"BODY": text}
    file = Path(text[1:])
    with suppress(RuntimeError):  # nobody has that home
        file = file.expanduser()
    if text == "@-":
        problems.append("--body @-: standard input is not read; give a file, as in --body @request.json.")
    elif (kind := kind_of(file)) != "file":
        instead = _NO_BODY[kind]
        problems.append(f"--body {text}: {instead}. Give a body that is not a file without @.")
    elif reason := _unreadable(file):
        problems.append(f"--body {text}: cannot be read ({reason}).")
    return {"BODY_FILE": str(file.resolve())}


def _unreadable(file: Path) -> str:
    """The system's words on a file that cannot be read; nothing of one that can."""
    try:
        with file.open("rb") as opened:
            opened.read(1)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _shown(body: dict[str, str]) -> str:
    if "BODY" in body:
        return f"a body of {pluralize(len(body['BODY'].encode()), 'byte', 'bytes')}"
    file = Path(body["BODY_FILE"])
    return f"each line of {file.name} in turn" if file.suffix in _LINES else file.name


def _content_type(body: dict[str, str]) -> str:
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
