"""A request to the LLM engine: the tokens it brings and asks for, and what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

NEVER = -1


class TokenJob:
    """One request: ``prompt`` tokens, to be answered with ``output`` tokens.

    ``chain``: the names of the whole blocks of prompt and answer (see ``kv_blocks``), fewer where the rest is nobody
    else's. A piece of the answer is ready after every ``tokens_per_piece`` tokens and after the last.

    Instants are ns, None until reached: ``start_ns``: its first step began; ``first_token_ns``; ``finish_ns``.
    ``cached``: the tokens of the prompt that were in the cache when it started, None before. ``computed``: the tokens,
    prompt and answer, that its steps computed, those that a preemption had computed again counted again.
    """

    __slots__ = (
        "arrival_ns",
        "blocks",
        "cached",
        "chain",
        "computed",
        "done",
        "due_step",
        "finish_ns",
        "first_token_ns",
        "full",
        "interrupted_ns",
        "lead",
        "order",
        "output",
        "preemptions",
        "produced",
        "prompt",
        "start_ns",
        "tokens_per_piece",
    )

    def __init__(self, prompt: int, output: int, chain: Sequence[int] = (), tokens_per_piece: int = 1) -> None:
        self.prompt = prompt
        self.output = output
        self.chain = chain
        self.tokens_per_piece = tokens_per_piece
        self.arrival_ns = 0
        self.start_ns: int | None = None
        self.first_token_ns: int | None = None
        self.finish_ns: int | None = None
        self.cached: int | None = None
        self.computed = 0
        self.preemptions = 0
        # The scheduler's: tokens of prompt and answer whose keys and values are in blocks, tokens of the answer that
        # there are, the blocks, and how many of these are full or will be when the step is over. While it is decoding,
        # the first two are those when it was last looked at, and ``lead`` + step is what is done before a step.
        self.done = 0
        self.produced = 0
        self.blocks: list[int] = []
        self.full = 0
        self.lead = 0
        # The step that has to look at it (NEVER: none), and its place among those that run.
        self.due_step = NEVER
        self.order = 0
        # The engine's: when its newest token was ready, where it has been preempted since.
        self.interrupted_ns: int | None = None

    @property
    def known(self) -> int:
        """The tokens of prompt and answer that there are, all of which have to be done before the next one."""
        return self.prompt + self.produced

    @property
    def ends_piece(self) -> bool:
        """Tells whether its newest token completes a piece."""
        return self.produced % self.tokens_per_piece == 0 or self.produced == self.output
