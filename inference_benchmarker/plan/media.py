"""Images and audio of requests, made from a seed: valid PNG and WAV, no two of them alike. Pure.

Servers keep what they computed of an image or a sound that they saw before, and know it by its content. So each has
other pixels, other samples; yet making one costs little more than a copy, for the work is done once: of an image only
the palette is drawn anew, a sound begins at another place of the same one.
"""

from __future__ import annotations

import base64
import math
import random
import re
import struct
import zlib
from array import array
from dataclasses import dataclass
from typing import Any, Self

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.words.redact import quoted

MOST_SIDE, MOST_IMAGES, MOST_SECONDS = 8_192, 100, 600.0
RATE = 16_000
"""Samples a second of all audio, in one channel of 16 bits."""
_BLOCK = 8  # pixels to a side of one colour
_SOUND_S = 10.0  # after which a sound repeats
_SHARE = r"(?::share=(?P<share>\d{1,3}(?:\.\d{1,9})?%?))?"
_IMAGE = re.compile(rf"(?P<width>\d{{1,5}})x(?P<height>\d{{1,5}})(?::(?P<number>\d{{1,4}}))?{_SHARE}")
_AUDIO = re.compile(rf"(?P<seconds>\d{{1,4}}(?:\.\d{{1,9}})?)s?{_SHARE}")


@dataclass(frozen=True, slots=True)
class Images:
    """``number`` images of ``width`` x ``height`` pixels, in this ``share`` of the requests."""

    text: str
    width: int
    height: int
    number: int = 1
    share: float = 1.0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``512x512``, ``512x512:2`` or ``512x512:2:share=30%``. Raises BenchmarkError."""
        match = _IMAGE.fullmatch(text.strip()) if text.isascii() else None
        if match is not None:
            width, height, number = int(match["width"]), int(match["height"]), int(match["number"] or 1)
            share = _share(match["share"])
            if 1 <= min(width, height) <= max(width, height) <= MOST_SIDE and 1 <= number <= MOST_IMAGES and share:
                return cls(match[0], width, height, number, share)
        raise BenchmarkError(
            f"--image {quoted(text.strip())} is not an image size.",
            f"Write 512x512, 512x512:2 for two in each request, 512x512:2:share=30% for them in 30% of the requests, "
            f"at most {MOST_SIDE:,} pixels to a side and {MOST_IMAGES} images.",
        )


@dataclass(frozen=True, slots=True)
class Audio:
    """A sound of so many ``seconds``, in this ``share`` of the requests."""

    text: str
    seconds: float
    share: float = 1.0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``5s`` or ``5s:share=30%``. Raises BenchmarkError."""
        match = _AUDIO.fullmatch(text.strip()) if text.isascii() else None
        if match is not None:
            seconds, share = float(match["seconds"]), _share(match["share"])
            if 1 / RATE <= seconds <= MOST_SECONDS and share:
                return cls(match[0], seconds, share)
        raise BenchmarkError(
            f"--audio {quoted(text.strip())} is not a length of audio.",
            f"Write 5s, or 5s:share=30% for it in 30% of the requests; at most {MOST_SECONDS:g} seconds.",
        )


class Media:
    """Makes the images and the audio of requests, as parts of a message of OpenAI's chats."""

    def __init__(self, images: Images | None, audio: Audio | None, seed: str) -> None:
        self._images = images
        self._audio = audio
        self._seed = seed
        self._picture = None if images is None else Picture(images.width, images.height)
        self._sound = None if audio is None else Sound(audio.seconds)

    def parts(self, number: int) -> list[dict[str, Any]]:
        """The parts of the request of an arrival: they follow from the seed and its number."""
        draw = random.Random(f"{self._seed}/media/{number}")
        found: list[dict[str, Any]] = []
        if self._images is not None and self._picture is not None and draw.random() < self._images.share:
            for _ in range(self._images.number):
                url = f"data:image/png;base64,{_text(self._picture.png(draw))}"
                found.append({"type": "image_url", "image_url": {"url": url}})
        if self._audio is not None and self._sound is not None and draw.random() < self._audio.share:
            fields = {"data": _text(self._sound.wav(draw)), "format": "wav"}
            found.append({"type": "input_audio", "input_audio": fields})
        return found

    def label(self, request: bytes) -> str:
        """The row of a request, by what is in its JSON: text, text + 2 images, text + audio."""
        images = "" if self._images is None or self._images.number == 1 else f"{self._images.number} "
        lines = ["text"]
        if b'"image_url"' in request:
            lines.append(f"{images}image{'s' if images else ''}")
        if b'"input_audio"' in request:
            lines.append("audio")
        return " + ".join(lines)


class Picture:
    """Makes images of one size: the same blocks, each time in colours of their own."""

    def __init__(self, width: int, height: int) -> None:
        chosen = random.Random(f"{width}x{height}")
        above = b"\2" + bytes(width)  # a line of pixels as those above it
        lines = []
        for _ in range(0, height, _BLOCK):
            blocks = chosen.randbytes(-(-width // _BLOCK))
            row = b"".join(bytes((block,)) * _BLOCK for block in blocks)
            lines += [b"\0", row[:width], *[above] * (_BLOCK - 1)]
        pixels = b"".join(lines)
        pixels = pixels[: height * (width + 1)]
        self._head = b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0))
        self._pixels = _chunk(b"IDAT", zlib.compress(pixels)) + _chunk(b"IEND", b"")

    def png(self, draw: random.Random) -> bytes:
        """An image with a palette of 256 colours that are drawn."""
        return self._head + _chunk(b"PLTE", draw.randbytes(3 * 256)) + self._pixels


class Sound:
    """Makes sounds of one length: tones of a fifth of a second, each time from another instant on."""

    def __init__(self, seconds: float) -> None:
        self._samples = round(seconds * RATE)
        chosen, step = random.Random("sound"), RATE // 5
        found = array("h")
        for start in range(0, round(min(seconds, _SOUND_S) * RATE) + step, step):
            pitch = 2 * math.pi * chosen.uniform(80, 1_000) / RATE
            found.extend(round(12_000 * math.sin(pitch * (start + number))) for number in range(step))
        self._loop = found.tobytes()
        size = 2 * self._samples
        form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, RATE, 2 * RATE, 2, 16)
        self._head = b"RIFF" + struct.pack("<I", 36 + size) + b"WAVE" + form + b"data" + struct.pack("<I", size)

    def wav(self, draw: random.Random) -> bytes:
        """A sound that begins at an instant, and with a few samples of noise, that are drawn."""
        size = 2 * self._samples
        start = 2 * draw.randrange(len(self._loop) // 2)
        noise = draw.randbytes(min(16, size))
        times = -(-(start + size) // len(self._loop))
        return self._head + noise + (self._loop * times)[start + len(noise) : start + size]


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _share(text: str | None) -> float:
    """The share of requests; 0 where it is none."""
    if text is None:
        return 1.0
    share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    return share if share <= 1 else 0.0
