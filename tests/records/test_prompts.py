"""The text of a prompt in blocks: the same text has the same ones, however it came together."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.facts.block_sums import FACTORS, sums_of
from inference_benchmarker.records.prompts import (
    BEGIN,
    BLOCK_BYTES,
    MOST_LOOKED_AT,
    AnsweredTurn,
    End,
    Prompt,
    bytes_of,
    prompt_of,
)

if TYPE_CHECKING:
    from inference_benchmarker.records.prompts import Spoken

TEXT = st.text(max_size=200)


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@given(st.lists(st.tuples(TEXT, TEXT), max_size=6))
def test_blocks_do_not_depend_on_how_a_text_grew(turns: list[tuple[str, str]]) -> None:
    """Each turn is a prompt and an answer, and the next one goes on after both."""
    end, found, text = BEGIN, b"", b""
    for asked, answer in turns:
        blocks, prompt_end, end = end.after(encoded(asked), encoded(answer))
        found += blocks
        assert prompt_end.size == len(text) + len(encoded(asked))
        assert (prompt_end.blocks, len(prompt_end.rest)) == divmod(prompt_end.size, BLOCK_BYTES)
        text += encoded(asked) + encoded(answer)
    assert found + end.rest == text
    assert (end.blocks, len(end.rest), end.size) == (*divmod(len(text), BLOCK_BYTES), len(text))


@given(st.lists(st.binary(min_size=BLOCK_BYTES, max_size=BLOCK_BYTES), max_size=60))
def test_each_block_has_a_sum_of_its_own(blocks: list[bytes]) -> None:
    """Whatever stands beside it, and wherever: of words that are multiplied by factors of their own."""
    alone = [*map(sums_of, blocks)]
    assert sums_of(b"".join(blocks)) == b"".join(alone)
    words = [[int.from_bytes(block[at : at + 4], "little") for at in range(0, BLOCK_BYTES, 4)] for block in blocks]
    sums = [sum(a * b for a, b in zip(each, map(int, FACTORS), strict=True)) % 2**64 >> 32 for each in words]
    assert [int.from_bytes(each, sys.byteorder) for each in alone] == sums


def test_blocks_that_differ_have_sums_that_do() -> None:
    """Texts of words, and blocks that differ in one bit: as many pairs alike as chance has, of which there is none."""
    chosen = random.Random(2)
    texts = [
        " ".join(f"{chosen.randrange(100_000):05}" for _ in range(6))[:BLOCK_BYTES].encode() for _ in range(20_000)
    ]
    texts = [each.ljust(BLOCK_BYTES) for each in texts]
    first = int.from_bytes(texts[0])
    texts += [(first ^ 1 << bit).to_bytes(BLOCK_BYTES) for bit in range(8 * BLOCK_BYTES)]
    sums = sums_of(b"".join(texts))
    assert len({sums[at : at + 4] for at in range(0, len(sums), 4)}) == len({*texts})


USER = {"role": "user", "content": "hi"}
IMAGE = f'\nuser\n[{{"image": "5000 {crc32(b"a" * (1024 + 1250 + 1024))}"}}]'
WORDS = "a word " * 1000
LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ({"messages": [USER]}, "\nuser\nhi"),
        (("header", {"messages": [USER], "model": "m"}), "m\nuser\nhi"),
        ({"messages": [USER, {"role": "assistant", "content": None}]}, "\nuser\nhi\nassistant\n"),
        ({"messages": [{"role": "odd", "content": [{"text": "é"}]}]}, '\nodd\n[{"text": "é"}]'),
        ({"messages": [{**USER, "name": "x"}]}, '\n{"role": "user", "content": "hi", "name": "x"}'),
        ({"messages": [USER], "system": "s", "tools": [1]}, "[1]s\nuser\nhi"),
        ({"messages": ["no object"]}, "\nno object"),
        ({"messages": [{"role": "user", "content": [{"image": "a" * 5000}]}]}, IMAGE),
        ({"messages": [{"role": "user", "content": [{"text": WORDS}]}]}, f'\nuser\n[{{"text": "{WORDS}"}}]'),
        ({"prompt": "p", "model": "m"}, "mp"),
    ],
)
def test_a_prompt_is_what_a_model_reads(payload: Any, text: str) -> None:
    prompt = prompt_of(payload)
    assert prompt is not None
    assert bytes_of(prompt.head, prompt.spoken).decode() == text


NO_PROMPTS = ["x", b"{}", None, {}, {"messages": "x"}, {"prompt": [1]}, ("a", "b"), {"inputs": 1}]


@pytest.mark.parametrize("payload", NO_PROMPTS)
def test_what_is_no_prompt_has_no_blocks(payload: Any) -> None:
    assert prompt_of(payload) is None


@pytest.mark.parametrize("content", [[b"x"], {(1, 2): 3}, LOOP])
def test_what_is_no_json_is_refused(content: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        prompt_of({"messages": [{"role": "user", "content": content}]})


@pytest.mark.parametrize(
    "messages",
    [
        [USER] * 20_000,
        [{"role": "user", "content": [0.5] * 5000}],
        [{"role": "user", "content": ["a word " * 40_000]}],
    ],
)
def test_more_than_is_looked_at_is_refused(messages: list[Any]) -> None:
    with pytest.raises(ValueError, match="longer"):
        prompt_of({"messages": messages})


@pytest.mark.parametrize("text", ["x" * (MOST_LOOKED_AT + 1), "é" * (MOST_LOOKED_AT // 2 + 1)])
def test_a_text_beyond_the_bound_has_no_blocks(text: str) -> None:
    with pytest.raises(ValueError, match="longer"):
        bytes_of((), [(None, text)])
    assert len(bytes_of((text[:-1],), [])) <= MOST_LOOKED_AT


def test_images_differ_by_any_part_that_is_sampled_and_by_their_size() -> None:
    image = "iVBORw0KGgo" * 100_000
    others = [image[:-1], "j" + image[1:], image[:-1] + "x", image[:550_000] + "A" * 5_000 + image[555_000:]]
    sent = [prompt_of({"messages": [{"role": "user", "content": [{"image": each}]}]}) for each in (image, *others)]
    texts = [bytes_of(each.head, each.spoken) for each in sent if each is not None]
    assert len({*texts}) == len(others) + 1
    assert max(map(len, texts)) < 100


def test_a_later_prompt_goes_on_from_the_answer_or_from_the_prompt_before() -> None:
    ask: Spoken = ("user", "ask")
    answer: Spoken = ("assistant", "answer")
    head = ("m", "", "")
    prompt, whole = End(1, b"x"), End(2, b"y")
    said = AnsweredTurn(head, [ask, answer], 1, prompt, whole)
    assert Prompt(head, [ask, answer, ask]).continued(said) == (2, whole)
    assert Prompt(head, [ask, ask]).continued(said) == (1, prompt)
    assert Prompt(head, [answer, answer]).continued(said) == (0, BEGIN)
    assert Prompt(("other", "", ""), [ask, answer, ask]).continued(said) == (0, BEGIN)
    assert Prompt(head, [ask]).continued(None) == (0, BEGIN)
