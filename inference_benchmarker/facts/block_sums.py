"""Sums of blocks of prompts, many at a time. Apart, since numpy is loaded for it, and only for sessions. Pure."""

from __future__ import annotations

from random import Random

import numpy as np

from inference_benchmarker.records.prompts import BLOCK_BYTES

_WORD = np.dtype("<u4")
_WORDS = BLOCK_BYTES // _WORD.itemsize
_CHOSEN = Random("blocks")
FACTORS = np.array([_CHOSEN.getrandbits(64) for _ in range(_WORDS)], np.uint64)
_HIGH = np.uint64(32)


def sums_of(blocks: bytes | bytearray) -> bytes:
    """A sum of 32 bits for each of these blocks, by itself, in this machine's byte order: the same in every worker.

    Each word of a block times a factor of its own, added up (multilinear hashing): two blocks that differ have the same
    sum once in 2**32. A checksum would take ten times as long, since it is called for each block.
    """
    words = np.frombuffer(blocks, _WORD).reshape(-1, _WORDS).astype(np.uint64)
    return (words @ FACTORS >> _HIGH).astype(np.uint32).tobytes()
