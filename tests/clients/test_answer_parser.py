"""The parser of answers: what it refuses to keep."""

from __future__ import annotations

import pytest

from inference_benchmarker.clients.answer_parser import MOST_HEAD, AnswerParser, NotHttpError


@pytest.mark.parametrize("interim", [b"", b"HTTP/1.1 103 Early Hints\r\nX-A: b\r\n\r\n"])
def test_headers_that_do_not_end_are_not_kept_for_ever(interim: bytes) -> None:
    parser = AnswerParser()
    parser.complete = False
    parser.parse(interim + b"HTTP/1.1 200 OK\r\n")
    line = b"X-Filler: " + b"x" * 1000 + b"\r\n"

    def feed() -> None:
        for _ in range(10 * MOST_HEAD // len(line)):
            parser.parse(line)

    with pytest.raises(NotHttpError, match="do not end"):
        feed()
    assert sum(map(len, parser.headers.values())) <= MOST_HEAD


def test_a_long_body_is_no_long_head() -> None:
    parser = AnswerParser()
    parser.complete = False
    parser.parse(b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n")
    for _ in range(3):
        parser.parse(b"x" * 1_000_000)
    assert parser.complete
