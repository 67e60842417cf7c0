"""The places that secrets take in a text, held against a search that looks at every character."""

from __future__ import annotations

import base64
from functools import partial
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.words.redact import CUT, HIDDEN, beginning, without
from inference_benchmarker.words.secret_encodings import places
from tests.growth import grows_with_size

FEW = st.text("XYZ/", min_size=8, max_size=14)  # so few letters that secrets overlap themselves and each other


def spelt(secret: str) -> tuple[str, ...]:
    """Some of the spellings that are promised, made anew."""
    data = secret.encode()
    return (
        secret,
        data.hex(),
        quote(secret, safe=""),
        r"\x00".join(secret),
        base64.b64encode(data).decode()[: 8 * len(data) // 6],
    )


def hidden_by_hand(text: str, sought: list[str]) -> str:
    """The text with every character hidden that an occurrence covers; of overlapping ones it is one."""
    found = sorted({(at, at + len(one)) for one in sought for at in range(len(text)) if text.startswith(one, at)})
    clean, reported = "", 0
    for start, end in found:
        if start >= reported:
            clean += text[reported:start] + HIDDEN
        reported = max(reported, end)
    return clean + text[reported:]


@st.composite
def overlapping(draw: st.DrawFn) -> tuple[list[str], str]:
    """Secrets, and a text made of them, of parts of them and of words, coloured in places."""
    secrets = draw(st.lists(FEW, min_size=1, max_size=3))
    whole = [one for secret in secrets for one in spelt(secret)]
    parts = [secret[at:] for secret in secrets for at in (2, 5)] + [secret[:-at] for secret in secrets for at in (2, 5)]
    return secrets, "".join(draw(st.lists(st.sampled_from([*whole, *parts, "X", "/", " a "]), max_size=12)))


@given(overlapping())
@settings(max_examples=200)
def test_every_character_of_every_occurrence_is_hidden(drawn: tuple[list[str], str]) -> None:
    secrets, text = drawn
    clean = without(text, secrets)
    by_hand = hidden_by_hand(text, [one for secret in secrets for one in spelt(secret)])
    left, most = ("".join(each.split(HIDDEN)) for each in (clean, by_hand))
    assert is_within(left, most), "what is left was left by hand"
    assert not any(one in piece for piece in clean.split(HIDDEN) for secret in secrets for one in spelt(secret))
    if not set(text) - set("XYZ/"):
        assert clean == hidden_by_hand(text, secrets)


def is_within(short: str, long: str) -> bool:
    """Whether the letters of one stand in the other, in their order."""
    rest = iter(long)
    return all(letter in rest for letter in short)


@given(overlapping(), st.integers(1, 12))
def test_colours_change_nothing_of_it(drawn: tuple[list[str], str], every: int) -> None:
    secrets, text = drawn
    pieces = [text[at : at + every] for at in range(0, len(text), every)]
    coloured = without("\x1b[31m".join(pieces), secrets)
    assert coloured.replace("\x1b[31m", "") == without(text, secrets)


@pytest.mark.parametrize(
    ("secrets", "text", "clean"),
    [
        (["tail-of-one", "one-and-next"], "a tail-of-one-and-next b", f"a {HIDDEN} b"),
        (["abcdefghij", "cdefghijkl"], "abcdefghijkl", HIDDEN),
        (["abcdefgh-and-more", "abcdefgh"], "abcdefgh-and-more", HIDDEN),
        (["abcabcabc"], "abcabcabcabcabcd", f"{HIDDEN}d"),
        (["abcdefgh"], "abcdefghabcdefgh", 2 * HIDDEN),
        (["abcdefgh"], "defgh", "defgh"),  # a part that stands alone is not found
    ],
)
def test_of_secrets_that_overlap_nothing_is_left(secrets: list[str], text: str, clean: str) -> None:
    assert without(text, secrets) == clean
    assert without(text, secrets[::-1]) == clean


@pytest.mark.parametrize("secret", ["a" * 8, "a" * 1280, "a" * 640 + "b" + "a" * 639, "ab" * 40, "Zq9xW8vU7tS6rQ5p"])
def test_time_is_linear_in_a_text_that_is_full_of_a_secret(secret: str) -> None:
    def search(size: int) -> None:
        places((secret[:-1] + secret) * (size // len(secret)), (secret,))
        places(secret[0] * size, (secret,))
        places((secret + "\x1b[0m") * (size // len(secret)), (secret,))

    assert grows_with_size(search, 5_000)


def test_a_beginning_tells_no_half_of_a_secret_whose_neighbours_took_much_room() -> None:
    """What is hidden makes the text shorter than what a secret that was cut may have left at its end."""
    secret = "Zq9xW8vU7tS6rQ5pO4nM3lK2jI1hG0fE"
    for count in range(20):
        text = secret * count + r"\u0000".join(secret) * 4
        assert not set(beginning(text, 300, [secret])) - set(HIDDEN + CUT)


@pytest.mark.parametrize("hide", [without, partial(beginning, limit=1000)])
def test_who_has_no_secrets_leaves_a_text_alone(hide: partial[str]) -> None:
    assert hide("plain \x1b[31mtext", also=[]) == "plain \x1b[31mtext"
