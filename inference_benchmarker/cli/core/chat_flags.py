"""The flags of chats: conversations, images, sounds and the models that requests ask for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.flags import Flag, by_text, parse_path
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.conversation import SharedPrefix, TurnCount
from inference_benchmarker.plan.media import Audio, Images
from inference_benchmarker.plan.model_mix import ModelMix
from inference_benchmarker.url import endpoint_address
from inference_benchmarker.words.redact import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inference_benchmarker.engine.endpoint.address_options import AddressOptions, Described

HISTORIES = ("live", "with-reasoning", "recorded")
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_PROMPTS = ("conversations", "turns", "body", "prompt", "input_tokens", "image", "audio")
"""Flags that say what is sent to a model."""


def _history(text: str) -> str:
    if text not in HISTORIES:
        raise BenchmarkError(f"--history must be {', '.join(HISTORIES[:-1])} or {HISTORIES[-1]}, not {quoted(text)}.")
    return text


def _header_name(text: str) -> str:
    if not HEADER_NAME.fullmatch(text):
        raise BenchmarkError(f"--session-header must be the name of a header, X-Session-Id, not {quoted(text)}.")
    return text


MODEL_MIX = Flag(
    "--model-mix",
    "A=3,B=1",
    "several models, such as LoRA adapters, by their shares: A gets three times as many requests as B",
    by_text(ModelMix.parse),
)
_TURN_FLAGS = [
    Flag(
        "--turns",
        "N",
        "send conversations of N turns to an LLM: 5, uniform:3..8, geometric:4. Each turn repeats all earlier ones",
        by_text(TurnCount.parse),
    ),
    Flag(
        "--shared-prefix",
        "TOKENS",
        "with --turns, a system prompt of this many tokens that all conversations share: 4000. With groups=20, there "
        "are 20 such prompts; zipf=1.1 makes some more frequent than others: 4000:groups=20:zipf=1.1",
        by_text(SharedPrefix.parse),
    ),
    Flag(
        "--history",
        "KIND",
        "earlier answers that each turn repeats. live (default): those received, without the model's reasoning; "
        "with-reasoning: those received, with the reasoning; recorded: those of the recording or, with --turns, "
        "synthetic text of --output-tokens tokens",
        by_text(_history),
    ),
    Flag(
        "--session-header",
        "NAME",
        "with --turns, a request header that carries the conversation id",
        by_text(_header_name),
    ),
]
CHAT_FLAGS = [
    *_TURN_FLAGS,
    Flag(
        "--image",
        "WxH[:N]",
        "N images of this size in each chat request (with share=30%, in 30% of them), new ones each time: "
        "512x512, 512x512:2, 512x512:share=30%",
        by_text(Images.parse),
    ),
    Flag(
        "--audio",
        "S",
        "S seconds of audio (WAV) in each chat request (with share=30%, in 30% of them), new each time: 5s, "
        "5s:share=30%",
        by_text(Audio.parse),
    ),
]


def of_single_requests(flags: Iterable[Flag]) -> list[Flag]:
    """The flags of a command that sends single requests: its help has none of conversations."""
    return [flag._replace(hidden=True) if flag in _TURN_FLAGS else flag for flag in flags]


def without_turns(options: dict[str, Any], problems: list[str]) -> None:
    """Take the flags of conversations out of the options of a search, and say what sends conversations."""
    given = [flag for flag in _TURN_FLAGS if options[flag.name] is not None]
    for flag in given:
        options[flag.name] = None
    if given:
        problems.append(
            f"{', '.join(flag.flag for flag in given)}: a search sends single requests: leave "
            f"{'it' if len(given) == 1 else 'them'} out, or try rates of conversations in waves: "
            "`benchmark URL --turns N --client-rps R`."
        )


def take_conversations(text: str, options: dict[str, Any]) -> None:
    """Send the conversations of a recording that is replayed to a chat, unless flags say what is sent."""
    if not options.get("replay") or any(options.get(name) for name in _PROMPTS):
        return
    from inference_benchmarker.engine.endpoint.addressed import is_of_chats
    from inference_benchmarker.recording.conversations.reading import are_in

    try:
        if is_of_chats(endpoint_address(text)) and are_in(parse_path("--replay", options["replay"])):
            options["conversations"] = options["replay"]
    except BenchmarkError:  # which the address and the recording report in their places
        return


def with_mix(described: Described, asked: AddressOptions, mix: str, problems: list[str]) -> Described:
    """The same with its models named by a mix, which is sent with each request."""
    if asked.model is not None:
        problems.append("Give either --model or --model-mix, not both.")
    if not described.is_model:
        problems.append("--model-mix: only for an OpenAI-compatible API, at a URL that ends in /v1.")
    return described._replace(models=None, words=f"{described.words}, models {mix}")
