"""An address of OpenAI's API, or of one like it, as a shipped file and its settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from inference_benchmarker.engine.endpoint.address_body import body_settings
from inference_benchmarker.engine.endpoint.address_options import (
    CHAT,
    CONVERSATIONS_FILE,
    OPENAI_FILE,
    RECORDED_FILE,
    RERANK_FILE,
    RESPONSES,
    RESPONSES_FILE,
    AddressOptions,
    Described,
)
from inference_benchmarker.plan.conversation import CACHE_SETTINGS, WARM

if TYPE_CHECKING:
    from collections.abc import Iterator
    from urllib.parse import SplitResult

    from inference_benchmarker.plan.conversation import TurnCount

OF_SESSIONS = ("shared_prefix", "history", "session_header", "cache")
OF_MEDIA = ("image", "audio")


def of_openai(api: str, base: SplitResult, asked: AddressOptions, problems: list[str]) -> Described:
    """The file and settings of OpenAI's API: chats, completions or embeddings, or conversations with turns."""
    problems += _conflicts(api, asked)
    server, path, query = base.netloc, base.path, base.query
    if asked.turns is not None or asked.recorded is not None:
        return _conversations(asked.turns, base, asked)
    settings = {"URL": server, "BASE_PATH": path, "API": api, "MODEL": asked.model or ""}
    settings |= {"QUERY": query} if query else {}
    settings |= body_settings(asked.body, problems) if asked.body is not None else {}
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
    text = "".join(f", {name.lower()} {each.text}" for name, each in media.items() if each is not None)
    words = f"{server}{path}: {named}{_sizes(api, asked)}{text}"
    found = Described(OPENAI_FILE, settings, words, server, models=f"{server}{path}/models")
    if asked.model is not None:
        return found.with_model(asked.model)
    return found if asked.body is None else found._replace(models=None)  # a body names its model itself, or need not


def _conversations(turns: TurnCount | None, base: SplitResult, asked: AddressOptions) -> Described:
    prefix = asked.shared_prefix
    fields = {
        "QUERY": base.query or None,
        "INPUT_TOKENS": asked.input_tokens,
        "OUTPUT_TOKENS": asked.output_tokens,
        "SHARED_PREFIX": None if prefix is None else prefix.text,
        "HISTORY": asked.history,
        "SESSION_HEADER": asked.session_header,
    }
    if asked.cache is not None:
        name, made = CACHE_SETTINGS[asked.cache]
        fields[name] = made()
    server = f"{base.netloc}{base.path}"
    settings = {"URL": base.netloc, "BASE_PATH": base.path, "MODEL": asked.model or ""}
    settings |= {"TURNS": turns.text} if turns is not None else {}
    settings |= {name: str(value) for name, value in fields.items() if value is not None}
    file, what = RECORDED_FILE, f"the conversations of {Path(asked.recorded or '').name}"
    if turns is not None:
        file, what = CONVERSATIONS_FILE, f"conversations of {turns.text} turns"
    words = f"{server}: streaming {what}{_sizes(CHAT, asked) if turns is not None else ''}"
    found = Described(file, settings, words, base.netloc, models=f"{server}/models")
    return found if asked.model is None else found.with_model(asked.model)


def of_responses(server: str, before: str, asked: AddressOptions, problems: list[str]) -> Described:
    """The file and settings of OpenAI's responses API, streamed."""
    problems += _conflicts(RESPONSES, asked)
    sizes = {"PROMPT": asked.prompt, "PROMPT_WORDS": asked.input_tokens, "MAX_TOKENS": asked.output_tokens}
    settings = {"URL": server + before, **{name: str(value) for name, value in sizes.items() if value is not None}}
    words = f"{server}{before}/v1: streaming responses{_sizes(RESPONSES, asked)}"
    found = Described(RESPONSES_FILE, settings, words, server, models=f"{server}{before}/v1/models")
    return found if asked.model is None else found.with_model(asked.model)


def of_rerank(server: str, before: str, asked: AddressOptions, problems: list[str]) -> Described:
    """TEI's where nothing stands before /rerank, else that of Jina, Cohere, vLLM and others."""
    if stray := asked.given("prompt", "output_tokens", "turns", *OF_SESSIONS, *OF_MEDIA):
        problems.append(f"{', '.join(stray)}: reranking has queries and texts of --input-tokens; leave them out.")
    if asked.input_tokens is not None and asked.input_tokens < 1:
        problems.append(f"--input-tokens must be at least 1, not {asked.input_tokens}.")
    is_tei = not before
    sizes = {} if asked.input_tokens is None else {"TEXT_WORDS": str(asked.input_tokens)}
    settings = {"URL": server, "BASE_PATH": before, "TEI": str(is_tei).lower(), "MODEL": asked.model or "", **sizes}
    words = f"{server}{before}/rerank: reranking of 8 texts, {asked.input_tokens or 100:,} tokens each"
    if is_tei and asked.model is not None:
        problems.append("--model: TEI's /rerank has one model and does not take its name; leave it out.")
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
    media = asked.given(*OF_MEDIA)
    if media and api != CHAT:
        yield f"{', '.join(media)}: only chats have images and audio, and this is a URL of {api}."
    if media and (stray := asked.given("body", "turns", "recorded")):
        yield f"{', '.join(media)}: for single requests that the tool makes itself: leave {' and '.join(stray)} out."


def _session_conflicts(api: str, asked: AddressOptions) -> Iterator[str]:
    if asked.recorded is not None:
        yield from _recorded_conflicts(api, asked)
        return
    if asked.turns is None:
        if stray := asked.given(*OF_SESSIONS):
            yield f"{', '.join(stray)}: only for conversations: give --turns, too."
        return
    if api != CHAT:
        yield f"--turns: in an OpenAI-compatible API only chats have turns, and this is a URL of {api}."
    if asked.cache == WARM and asked.shared_prefix is None:
        yield "--cache warm sends what conversations share, and these share nothing: give --shared-prefix, too."
    if stray := asked.given("body", "prompt"):
        yield f"--turns generates the prompts itself: leave {' and '.join(stray)} out."


def _recorded_conflicts(api: str, asked: AddressOptions) -> Iterator[str]:
    if api != CHAT:
        yield f"--conversations: in an OpenAI-compatible API only chats have turns, and this is a URL of {api}."
    if stray := asked.given("body", "prompt", "input_tokens", "turns", "shared_prefix"):
        yield f"--conversations has the prompts: leave {' and '.join(stray)} out."
    if asked.cache == WARM:
        yield "--cache warm: for --turns with --shared-prefix; what recorded conversations share is not known before."
