"""The rules by which the embedded LLM engine works, and the profiles that have them by name."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LEAST_STEP_MS = 1.0
"""Of a step that computes tokens of answers, as in Dynamo's model."""


@dataclass(frozen=True, slots=True)
class EngineRules:
    """The engine's KV cache, the bounds of its batch and the lengths of its steps.

    ``kv_tokens``: those for which the KV cache has room, in blocks of ``block_size``. At most ``max_num_seqs``
    requests run at a time, and a step computes at most ``max_num_batched_tokens``.

    A step that computes tokens of prompts takes C ms for that and, for the n tokens after the p first of each prompt,
    A ((p + n)^2 - p^2) + B n (``prefill_ms`` = A, B, C): together the fit A x^2 + B x + C for a whole prompt of x.
    One that computes tokens of n answers takes A u^2 + B u + C + D n ms for that, and at least 1 ms (``step_ms`` =
    A, B, C, D), where u is the share of the KV cache that their contexts fill, each for itself: at most 1. A step that
    does both takes the sum.
    """

    kv_tokens: int
    prefill_ms: tuple[float, float, float]
    step_ms: tuple[float, float, float, float]
    block_size: int = 16
    max_num_seqs: int = 1024
    max_num_batched_tokens: int = 8192

    @property
    def blocks(self) -> int:
        """The number of whole blocks that there are."""
        return self.kv_tokens // self.block_size

    @property
    def longest(self) -> int:
        """The most tokens that a prompt and its answer may have together, so that they can be computed alone."""
        return self.blocks * self.block_size

    def chunk_ms(self, done: int, tokens: int) -> float:
        """The part of a step that computes so many tokens of a prompt after those that are done."""
        square, each, _ = self.prefill_ms
        return square * tokens * (2 * done + tokens) + each * tokens

    def decode_ms(self, context: int, answers: int) -> float:
        """The part of a step that computes a token for each of so many answers, after so many tokens in all."""
        square, linear, base, each = self.step_ms
        used = min(1.0, context / self.kv_tokens)
        return max(LEAST_STEP_MS, square * used * used + linear * used + base + each * answers)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Each field that is wrong, and why."""
        if self.block_size < 1:
            yield "block_size", f"is {self.block_size}: it must be at least 1"
        elif self.blocks < 1:
            yield "kv_tokens", f"is {self.kv_tokens}: it must be at least a block of {self.block_size}"
        if self.max_num_seqs < 1:
            yield "max_num_seqs", f"is {self.max_num_seqs}: it must be at least 1"
        elif self.max_num_batched_tokens < self.max_num_seqs:
            least = f"each of up to {self.max_num_seqs} requests computes a token in a step"
            yield "max_num_batched_tokens", f"is {self.max_num_batched_tokens}: {least}"
        for name, values, form in (("prefill_ms", self.prefill_ms, "A:B:C"), ("step_ms", self.step_ms, "A:B:C:D")):
            if len(values) != form.count(":") + 1 or not all(map(math.isfinite, values)):
                yield name, f"is {':'.join(map(str, values))}: it must be the numbers {form}"
        if min(self.prefill_ms, default=0) < 0:
            yield "prefill_ms", "has a negative number: no prompt takes less time for being longer"


# Prefill and step: the fit in the mocker of NVIDIA's Dynamo (ai-dynamo/dynamo, its polynomial timing model), there for
# an LLM on one GPU whose name it does not give. KV cache: (0.9 x 80 GB - 2 bytes x 8.03e9 parameters) / 128 KiB a
# token (2 x 32 layers x 8 KV heads x 128 x 2 bytes), in whole blocks of 16; vLLM's activations would take some of it.
# Bounds: vLLM's defaults for its server on an H100.
_H100 = EngineRules(426_784, (4.209989e-7, 1.518344e-2, 16.50142), (-25.74, 54.01, 5.74, 0.0))
# Prefill and step: llm-d's inference simulator, profile "8B on 1 H100" (30 ms and 0.25 ms a token; 12 ms, twice that
# at a full batch, which is 256 here: vLLM's former default). KV cache: as above.
_LLM_D = EngineRules(426_784, (0.0, 0.25, 30.0), (0.0, 0.0, 12.0, 12.0 / 256), max_num_seqs=256)
# Timing of 8b-h100 with a cache of 16,384 tokens, which a dozen conversations fill: to see preemptions in a minute.
_SMALL_CACHE = EngineRules(16_384, _H100.prefill_ms, _H100.step_ms)

PROFILES: Mapping[str, EngineRules] = {"8b-h100": _H100, "8b-h100-llm-d": _LLM_D, "small-cache": _SMALL_CACHE}
"""The engines that ``--llm`` knows by name."""
BASE = "8b-h100"
"""The profile whose cache and bounds a fitted engine has, where nobody gives it others."""
