"""Recorded conversations as they are sent again: the messages of each turn, and texts in place of numbered blocks."""

from __future__ import annotations

import random
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORDS = """
time year people way day man thing woman life child world school state family student group country problem hand
part place case week company system program question work government number night point home water room mother area
money story fact month lot right study book eye job word business issue side kind head house service friend father
power hour game line end member law car city community name team minute body information back parent face level
office door health person art war history party result change morning reason research girl guy moment air teacher
"""
WORDS = _WORDS.split()
"""Words, each a token to most tokenizers."""
_POOL = 1 << 13  # twice as many words as a block may have
_DIGITS = 5  # words that tell a block's number: seven billion, and twice as many words for more
_AT_HAND = 1 << 14  # blocks: of 512 words they take 50 MB


class RecordedTurn(NamedTuple):
    """The next turn of a recorded conversation: all ``messages`` that are sent with it.

    ``output_tokens``: the tokens of its recorded answer, and ``think_s`` the seconds before it; None where nobody
    recorded them. ``tools``: those that the conversation may call. ``left``: how many turns follow.
    """

    messages: list[dict[str, Any]]
    output_tokens: int | None
    think_s: float | None
    tools: list[Any] | None = None
    left: int = 0


class RecordedConversation:
    """A conversation of a file, turn by turn, as a session sends it again.

    ``row``: what the session is given. ``seed``: of the texts in place of numbered blocks and of mere lengths: the same
    number, the same text. With ``live`` a turn has the answers before it as they came (see ``hear``), else as they were
    recorded. An answer that called tools is put back as recorded in any case: the tools' results refer to it. Prompts
    of blocks have all that was said before in them, as it was recorded. ``salt``: words before the first message.
    """

    def __init__(self, row: dict[str, Any], seed: str = "0", *, live: bool = True, salt: str = "") -> None:
        self._row, self._seed, self._live, self._salt = row, seed, live, salt
        self._messages: list[dict[str, Any]] = []
        self._blocks: list[int] = []
        self._recorded: dict[str, Any] | None = None
        self._heard: str | None = None

    def hear(self, text: str | None) -> None:
        """The answer to the turn that was given last."""
        self._heard = text

    def __iter__(self) -> Iterator[RecordedTurn]:
        turns, tools = self._row["turns"], self._row.get("tools")
        for number, turn in enumerate(turns):
            if "messages" in turn:
                self._say(turn.get("keep"), turn["messages"])
            elif "keep" in turn:
                self._blocks = [*self._blocks[: turn["keep"]], *turn["blocks"]]
                self._say(0, [_asked(self._text(self._blocks, turn["tokens"], number))])
            else:
                self._say(None, [_asked(self._text(turn["blocks"], turn["tokens"], number))])
            self._recorded, self._heard = turn.get("answer"), None
            sent = [*map(self._salted, self._messages[:1]), *self._messages[1:]]
            yield RecordedTurn(sent, turn.get("out"), turn.get("think_s"), tools, len(turns) - number - 1)

    def _salted(self, message: dict[str, Any]) -> dict[str, Any]:
        """The first message, which begins with the salt where it is a text."""
        content = message.get("content")
        return {**message, "content": f"{self._salt} {content}"} if self._salt and isinstance(content, str) else message

    def _say(self, keep: int | None, messages: list[dict[str, Any]]) -> None:
        """Add messages: behind all before them and its answer, or behind so many, with the answer among them."""
        if keep is not None:
            self._messages = [*self._messages[:keep], *messages]
            return
        if (answer := self._answer()) is not None:
            self._messages.append(answer)
        self._messages += messages

    def _answer(self) -> dict[str, Any] | None:
        recorded = self._recorded
        if recorded is not None and (not self._live or recorded.get("tool_calls") or self._heard is None):
            return recorded
        return None if self._heard is None else {"role": "assistant", "content": self._heard}

    def _text(self, blocks: list[int], tokens: int, turn: int) -> str:
        """A text of so many words: those of its blocks, and behind them words of its own."""
        row = self._row
        own = row["number"] if row.get("own_blocks") else -1
        size = row.get("block_tokens", 0)
        whole = tokens // size if size else 0
        texts = [_block(self._seed, own, block, size, size) for block in blocks[:whole]]
        left = tokens - size * len(texts)
        if left and len(blocks) > whole:
            texts.append(_block(self._seed, own, blocks[whole], size, left))
        elif left:
            texts.append(_words(f"{self._seed}/{row['id']}/{turn}", left))
        return " ".join(texts)


def _asked(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


@lru_cache(_AT_HAND)
def _block(seed: str, own: int, block: int, size: int, words: int) -> str:
    """The first ``words`` of a block's: its owner's number and its own come first, so that no other begins as it does.

    A prompt that ends within a block has the same words as one that goes on.
    """
    begin = hash((own, block)) % (_POOL - size)
    return " ".join([*_number(own + 1), *_number(block), *_pool(seed)[begin : begin + size]][:words])


def _number(number: int) -> list[str]:
    """A number in words: its digits, as many for each number but the largest."""
    digits = _DIGITS if 0 <= number < len(WORDS) ** _DIGITS else 2 * _DIGITS
    rest, words = number % len(WORDS) ** digits, []
    for _ in range(digits):
        rest, digit = divmod(rest, len(WORDS))
        words.append(WORDS[digit])
    return words


@lru_cache(4)
def _pool(seed: str) -> list[str]:
    return random.Random(f"{seed}/blocks").choices(WORDS, k=_POOL)


def _words(seed: str, count: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=count))
