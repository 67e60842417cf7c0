"""The colours of runs, as people see them who see colours in different ways."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from visualization.figures.palette import CARDS, DARK, LIGHT, color_of, css_colors, dash_of

Vector = npt.NDArray[np.float64]

SIGHT = {
    "normal": np.eye(3),
    # Machado, Oliveira, Fernandes: A Physiologically-based Model for Simulation of Color Vision Deficiency (2009),
    # full severity, on linear RGB
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritan": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = np.array([0.95047, 1.0, 1.08883])
APART = 12.0
THEMES = pytest.mark.parametrize(("colors", "card"), [(LIGHT, CARDS[0]), (DARK, CARDS[1])], ids=["light", "dark"])


def linear(color: str) -> Vector:
    channels = np.array([int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(light: Vector) -> Vector:
    ratio = TO_XYZ @ light / WHITE
    x, y, z = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def ciede2000(one: Vector, other: Vector) -> float:
    """The distance of two colours in Lab, by the formula of CIE 142-2001."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    chroma = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    stretch = 1.5 - 0.5 * np.sqrt(chroma**7 / (chroma**7 + 25**7))
    c1, c2 = np.hypot(a1 * stretch, b1), np.hypot(a2 * stretch, b2)
    h1, h2 = (np.degrees(np.arctan2(b, a * stretch)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180
    hue, mean_c, mean_l = np.radians(h1 + turn / 2), (c1 + c2) / 2, (l1 + l2) / 2
    t = (
        1 - 0.17 * np.cos(hue - np.radians(30)) + 0.24 * np.cos(2 * hue)
        + 0.32 * np.cos(3 * hue + np.radians(6)) - 0.2 * np.cos(4 * hue - np.radians(63))
    )  # fmt: skip
    light = (l2 - l1) / (1 + 0.015 * (mean_l - 50) ** 2 / np.sqrt(20 + (mean_l - 50) ** 2))
    colorful = (c2 - c1) / (1 + 0.045 * mean_c)
    round_ = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2)) / (1 + 0.015 * mean_c * t)
    blue = 30 * np.exp(-(((np.degrees(hue) % 360 - 275) / 25) ** 2))
    mixed = -np.sin(2 * np.radians(blue)) * 2 * np.sqrt(mean_c**7 / (mean_c**7 + 25**7))
    return float(np.sqrt(light**2 + colorful**2 + round_**2 + mixed * colorful * round_))


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, -1.3802, -84.2814), (50, 0, -82.7485), 1.0000),
        ((50, 2.5, 0), (50, 0, -2.5), 4.3065),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((22.7233, 20.0904, -46.694), (23.0331, 14.973, -42.5619), 2.0373),
        ((2.0776, 0.0795, -1.135), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_the_distance_is_that_of_published_pairs(
    one: tuple[float, ...], other: tuple[float, ...], distance: float
) -> None:
    """Sharma, Wu and Dalal (2005) give these to check an implementation with."""
    assert ciede2000(np.array(one), np.array(other)) == pytest.approx(distance, abs=1e-4)


@pytest.mark.parametrize("sight", SIGHT)
@THEMES
def test_every_two_colours_are_distinguished(colors: tuple[str, ...], card: str, sight: str) -> None:
    seen = {color: lab(np.clip(SIGHT[sight] @ linear(color), 0, 1)) for color in colors}
    near = {(a, b): ciede2000(seen[a], seen[b]) for a, b in combinations(colors, 2)}
    assert {pair: distance for pair, distance in near.items() if distance < APART} == {}


@THEMES
def test_every_colour_stands_out_from_its_card(colors: tuple[str, ...], card: str) -> None:
    behind = TO_XYZ[1] @ linear(card) + 0.05
    for color in colors:
        one = TO_XYZ[1] @ linear(color) + 0.05
        assert max(one, behind) / min(one, behind) >= 3, color


def test_a_colour_that_comes_again_has_another_dash() -> None:
    assert len({(color_of(run), dash_of(run)) for run in range(32)}) == 32
    assert {dash_of(run) for run in range(len(LIGHT))} == {()}, "dashes mean something else on most pages"
    assert css_colors().count("light-dark(") == len(LIGHT)
