"""The flags of an address, and the file and settings that they become."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from inference_benchmarker.system.packaged import HTTP_FILE
from inference_benchmarker.url import SEED_SETTING

if TYPE_CHECKING:
    from inference_benchmarker.plan.conversation import SharedPrefix, TurnCount
    from inference_benchmarker.plan.media import Audio, Images

OPENAI_FILE = "openai_compatible/factories_by_url.py"
CONVERSATIONS_FILE = "conversations/factories_by_url.py"
RECORDED_FILE = "conversations/factories_recorded.py"
RERANK_FILE = "openai_compatible/factories_rerank.py"
RESPONSES_FILE = "openai_compatible/factories_responses_stream.py"
URL_FILES = (HTTP_FILE, OPENAI_FILE, CONVERSATIONS_FILE, RECORDED_FILE, RERANK_FILE, RESPONSES_FILE)
"""The files that `benchmark URL` sends with."""
JSON = "application/json"
CHAT, RESPONSES, RERANK = "chat", "responses", "rerank"
_IGNORE_EOS = '{"ignore_eos": true}'
_IGNORING_EOS = ("vllm", "sglang")  # as their lists of models say
_COUNTING_PIECES = ("vllm", "sglang")


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

    def with_whole_answers(self, server: str) -> Described:
        """The same, of made-up conversations, with answers as long as they may be, if the software knows how."""
        if "TURNS" not in self.settings or server not in _IGNORING_EOS:
            return self
        words = f"{self.words}, all of them with {_IGNORE_EOS}"
        return self._replace(settings={**self.settings, "MORE": _IGNORE_EOS}, words=words)

    def with_counted_pieces(self, server: str) -> Described:
        """The same with the tokens of each piece reported, if answers are streams and the software knows how."""
        is_stream = self.file in (OPENAI_FILE, CONVERSATIONS_FILE, RECORDED_FILE)
        if not is_stream or self.settings.get("API") == "embeddings" or server not in _COUNTING_PIECES:
            return self
        settings = {**self.settings, "CONTINUOUS_USAGE": "true"}
        return self._replace(settings=settings, words=f"{self.words}, usage in each piece")
