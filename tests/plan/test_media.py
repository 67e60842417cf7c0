"""Images and audio: what others read in them, that no two are alike, and that the same seed makes the same."""

from __future__ import annotations

import base64
import io
import random
import wave

import pytest
from PIL import Image

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.media import RATE, Audio, Images, Media, Picture, Sound


@pytest.mark.parametrize(("width", "height"), [(512, 512), (1, 1), (13, 7), (8, 17), (300, 20)])
def test_an_image_is_read_by_others_and_each_has_other_pixels(width: int, height: int) -> None:
    picture = Picture(width, height)
    images = [Image.open(io.BytesIO(picture.png(random.Random(seed)))).convert("RGB") for seed in (1, 1, 2)]
    assert all(image.size == (width, height) for image in images)
    first, again, other = (image.tobytes() for image in images)
    assert first == again
    assert sum(a == b for a, b in zip(first, other, strict=True)) < 0.3 * len(first)


def test_neighbouring_blocks_differ() -> None:
    image = Image.open(io.BytesIO(Picture(64, 64).png(random.Random(1)))).convert("RGB")
    colours = {image.getpixel((x, y)) for x in range(0, 64, 8) for y in range(0, 64, 8)}
    assert len(colours) > 40
    assert image.getpixel((0, 0)) == image.getpixel((7, 7))


@pytest.mark.parametrize("seconds", [0.0001, 0.5, 5, 12.34])
def test_a_sound_is_read_by_others_and_each_has_other_samples(seconds: float) -> None:
    sound = Sound(seconds)
    found = []
    for seed in (1, 1, 2):
        with wave.open(io.BytesIO(sound.wav(random.Random(seed)))) as read:
            assert (read.getnchannels(), read.getsampwidth(), read.getframerate()) == (1, 2, RATE)
            assert read.getnframes() == round(seconds * RATE)
            found.append(read.readframes(read.getnframes()))
            assert len(found[-1]) == 2 * read.getnframes()
    assert found[0] == found[1] != found[2]


def test_the_media_of_an_arrival_follow_from_the_seed_and_its_number() -> None:
    images, audio = Images.parse("16x8:2:share=50%"), Audio.parse("0.01s:share=0.25")
    media, other = Media(images, audio, "7"), Media(images, audio, "8")
    parts = [media.parts(number) for number in range(400)]
    assert parts == [Media(images, audio, "7").parts(number) for number in range(400)]
    assert parts != [other.parts(number) for number in range(400)]
    with_images = [found for found in parts if any(part["type"] == "image_url" for part in found)]
    with_audio = [found for found in parts if any(part["type"] == "input_audio" for part in found)]
    assert len(with_images) / 400 == pytest.approx(0.5, abs=0.1)
    assert len(with_audio) / 400 == pytest.approx(0.25, abs=0.08)
    urls = [part["image_url"]["url"] for found in with_images for part in found if part["type"] == "image_url"]
    assert len(urls) == len(set(urls)) == 2 * len(with_images)
    head, _, data = urls[0].partition(",")
    assert head == "data:image/png;base64"
    assert Image.open(io.BytesIO(base64.b64decode(data))).size == (16, 8)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{"a":1}', "text"),
        (b'{"type":"image_url","image_url":1}', "text + 2 images"),
        (b'{"image_url":1,"input_audio":2}', "text + 2 images + audio"),
    ],
)
def test_a_request_is_called_by_what_is_in_it(text: bytes, said: str) -> None:
    assert Media(Images.parse("8x8:2"), Audio.parse("1s"), "").label(text) == said


@pytest.mark.parametrize(
    "text", ["", "512", "0x5", "9000x5", "5x5:0", "5x5:101", "5x5:share=0", "5x5:share=101%", "axb"]
)
def test_what_are_no_images_is_said(text: str) -> None:
    with pytest.raises(BenchmarkError, match="is not an image size"):
        Images.parse(text)


@pytest.mark.parametrize("text", ["", "0s", "-1s", "601s", "5m", "5s:share=2", "1e3s"])
def test_what_is_no_audio_is_said(text: str) -> None:
    with pytest.raises(BenchmarkError, match="is not a length of audio"):
        Audio.parse(text)
