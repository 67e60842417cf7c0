"""The text of a prompt in blocks: the same text has the same ones, however it came together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.records.prompts import BLOCK_BYTES, MOST_LOOKED_AT, NO_TEXT, Said, prompt_of

if TYPE_CHECKING:
    from collections.abc import Sequence

TEXT = st.text(max_size=200)


@given(st.lists(TEXT, max_size=8))
def test_blocks_do_not_depend_on_how_a_text_grew(texts: list[str]) -> None:
    chain = NO_TEXT
    for text in texts:
        chain = chain.grown(text)
    data = "".join(texts).encode("utf-8", "surrogatepass")
    assert chain == NO_TEXT.grown("".join(texts))
    assert (len(chain.sums), len(chain.rest), chain.size) == (*divmod(len(data), BLOCK_BYTES), len(data))


@given(TEXT, TEXT)
def test_two_texts_have_the_blocks_that_they_begin_with_alike(one: str, other: str) -> None:
    blocks, data = (NO_TEXT.grown(one).sums, NO_TEXT.grown(other).sums), (one.encode(), other.encode())
    assert alike(*blocks) == alike(*data) // BLOCK_BYTES


def alike(one: Sequence[int], other: Sequence[int]) -> int:
    """The number of members that two begin with alike."""
    places = range(min(len(one), len(other)))
    return next((place for place in places if one[place] != other[place]), len(places))


def test_a_block_depends_on_all_before_it() -> None:
    one, other = NO_TEXT.grown("a" + "x" * 500).sums, NO_TEXT.grown("b" + "x" * 500).sums
    assert not {*enumerate(one)} & {*enumerate(other)}


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
    assert "".join(prompt.pieces) == text


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
        NO_TEXT.grown(text)
    assert NO_TEXT.grown(text[:-1]).size <= MOST_LOOKED_AT


def test_images_differ_by_any_part_that_is_sampled_and_by_their_size() -> None:
    image = "iVBORw0KGgo" * 100_000
    others = [image[:-1], "j" + image[1:], image[:-1] + "x", image[:550_000] + "A" * 5_000 + image[555_000:]]
    sent = [prompt_of({"messages": [{"role": "user", "content": [{"image": each}]}]}) for each in (image, *others)]
    texts = ["".join(each.pieces) for each in sent if each is not None]
    assert len({*texts}) == len(others) + 1
    assert max(map(len, texts)) < 100


def test_a_later_prompt_goes_on_from_the_answer_or_from_the_prompt_before() -> None:
    prompt, whole = NO_TEXT.grown("ask " * 20), NO_TEXT.grown("ask " * 20 + "answer " * 20)
    said = Said(["ask", "answer"], 1, whole, len(prompt.sums), prompt.rest, prompt.size)
    assert said.continued(["ask", "answer", "more"]) == (2, whole)
    assert said.continued(["ask", "another"]) == (1, prompt)
    assert said.continued(["else", "answer"]) is None
