"""What processes print reaches their logs without secrets and escapes, whole or bounded, and never holds them up."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.engine.processes import child_logs
from inference_benchmarker.engine.processes.child_logs import LONGEST_LINE, ChildLogs, HiddenLines, child_log
from inference_benchmarker.words.redact import redact
from inference_benchmarker.words.text import plain_lines

SECRET = "hunter2-hunter2-hunter2"


def logged(tmp_path: Path, *printed: bytes) -> str:
    """The log of a process that printed these pieces."""
    log = tmp_path / "worker.log"
    with child_log(log, [SECRET]) as writer:
        for piece in printed:
            os.write(writer, piece)
    return log.read_text()


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ((b"one\ntwo\n",), "one\ntwo\n"),
        ((b"half a", b" line\n"), "half a line\n"),
        ((b"no end",), "no end\n"),
        ((SECRET.encode()[:9], SECRET.encode()[9:] + b"\n"), "[hidden]\n"),
        ((b"\x1b[2J\x1b]0;title\x07VALID\n",), " [2J ]0;title VALID\n"),
        ((b"10%\r20%\r\nnext\n",), "10%\n20%\nnext\n"),
        ((b"\xff\xfe\n",), "\ufffd\ufffd\n"),
        ((b"\n\n",), "\n\n"),
        ((), ""),
    ],
)
def test_lines_are_kept_whole_and_made_plain(tmp_path: Path, printed: tuple[bytes, ...], expected: str) -> None:
    assert logged(tmp_path, *printed) == expected


@pytest.mark.parametrize("size", [LONGEST_LINE, LONGEST_LINE + 1, 600_000])
def test_a_long_line_is_cut_and_no_secret_at_the_cut_is_seen_in_part(tmp_path: Path, size: int) -> None:
    line = b"x" * (LONGEST_LINE - 9) + SECRET.encode()
    text = logged(tmp_path, line + b"y" * (size - len(line)) + b"\nafter\n")
    first, second = text.splitlines()
    assert first.startswith("x" * (LONGEST_LINE - 9) + "[hidden]")
    assert "hunter" not in text
    assert len(first) <= LONGEST_LINE + 40
    assert second == "after"


@pytest.mark.parametrize("lines_a_piece", [1, 7, 2000])
def test_of_very_many_lines_a_log_keeps_the_first_and_the_last_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines_a_piece: int
) -> None:
    monkeypatch.setattr(child_logs, "MOST_KEPT", 1000)
    monkeypatch.setattr(child_logs, "LAST_KEPT", 500)
    lines = [f"line {number} {SECRET}\n" for number in range(2000)]
    pieces = ["".join(lines[first : first + lines_a_piece]) for first in range(0, 2000, lines_a_piece)]
    log = logged(tmp_path, *map(str.encode, pieces)).splitlines()
    full, left_out = (
        next(place for place, line in enumerate(log) if text in line) for text in ("(more is", "left out")
    )
    assert left_out == full + 1
    first, last = log[:full], log[left_out + 1 :]
    clean = [line.replace(SECRET, "[hidden]").strip() for line in lines]
    assert first == clean[: len(first)]
    assert last == clean[-len(last) :]
    assert 40 < len(first) < 60
    assert 10 < len(last) < 30


def test_what_fits_after_all_is_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_logs, "MOST_KEPT", 40)
    lines = [b"line %d\n" % number for number in range(20)]
    log = logged(tmp_path, *lines).splitlines()
    assert [line for line in log if line.startswith("line")] == [line.decode().strip() for line in lines]
    assert len(log) == 21


def test_no_part_of_a_key_begins_what_is_kept_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_logs, "MOST_KEPT", 40)
    monkeypatch.setattr(child_logs, "LAST_KEPT", 120)
    key = b"-----BEGIN PRIVATE KEY-----\n" + b"c2VjcmV0\n" * 9 + b"-----END PRIVATE KEY-----\n"
    text = logged(tmp_path, b"first\n" * 20, key, b"over\n")
    assert "c2VjcmV0" not in text
    assert text.endswith("\nover\n")


def test_a_log_that_cannot_be_written_holds_up_nobody(tmp_path: Path) -> None:
    with child_log(tmp_path.joinpath("full"), [SECRET]) as writer:
        os.dup2(os.open("/dev/full", os.O_WRONLY), max(map(int, os.listdir("/proc/self/fd"))))  # noqa: PTH208
        for _ in range(40):
            os.write(writer, b"z" * 100_000 + b"\n")


def test_last_words_are_there_when_the_process_has_ended(tmp_path: Path) -> None:
    logs = ChildLogs([SECRET])
    log = tmp_path / "worker.log"
    writer = logs.pipe_to(log)
    code = f"print('loading'); print({SECRET!r}); raise SystemExit('it is over')"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=writer, stderr=writer)
    os.close(writer)
    logs.start()
    process.wait()
    assert logs.last_words(log) == ["loading", "[hidden]", "it is over"]
    logs.close()
    assert SECRET not in log.read_text()


def test_who_holds_the_pipe_open_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_logs, "CLOSING_S", 0.1)
    logs = ChildLogs([SECRET])
    writer = logs.pipe_to(tmp_path / "worker.log")
    logs.start()
    os.write(writer, b"said\n")
    logs.close()
    os.close(writer)
    assert (tmp_path / "worker.log").read_text() == "said\n"


def test_a_line_that_shrinks_when_cleaned_shows_no_half_of_a_secret_either(tmp_path: Path) -> None:
    text = logged(tmp_path, SECRET.encode() * 8000)
    assert "hunter" not in text
    assert "(the line is longer)" in text


def test_a_key_block_that_comes_line_by_line_is_seen_whole(tmp_path: Path) -> None:
    key = b"-----BEGIN PRIVATE KEY-----", b"MIIEvQIBADANBgkq", b"hkiG9w0BAQEFAASC", b"-----END PRIVATE KEY-----"
    log = tmp_path / "worker.log"
    with child_log(log) as writer:
        for line in (b"before", *key, b"after"):
            os.write(writer, line + b"\n")
            time.sleep(0.01)
    text = log.read_text()
    assert "MIIE" not in text
    assert "hkiG" not in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")


def test_base64_that_comes_line_by_line_is_seen_whole(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    with child_log(log, [SECRET]) as writer:
        for line in (b"before", *wrapped(SECRET.encode(), 8, "\n").split(b"\n"), b"after"):
            os.write(writer, line + b"\n")
            time.sleep(0.01)
    assert log.read_text() == "before\n[hidden]I=\nafter\n"


def test_no_part_of_a_secret_on_lines_begins_what_is_kept_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_logs, "MOST_KEPT", 40)
    monkeypatch.setattr(child_logs, "LAST_KEPT", 30)
    lines = wrapped(SECRET.encode(), 8, "\n") + b"\n"
    log = tmp_path / "worker.log"
    with child_log(log, [SECRET]) as writer:
        for piece in (b"first\n" * 20, lines, b"over\n"):
            os.write(writer, piece)
            time.sleep(0.01)
    text = log.read_text()
    assert not any(line in text for line in lines.decode().split())
    assert text.endswith("\nover\n")


def test_a_secret_that_begins_in_what_is_left_out_of_a_long_line_is_seen_whole(tmp_path: Path) -> None:
    lines = wrapped(SECRET.encode(), 8, "\n") + b"\n"
    text = logged(tmp_path, b"." * 400_000 + lines, b"after\n")
    assert not any(line in text for line in lines.decode().split())
    assert text.endswith("(the line is longer)\nafter\n")


def test_what_is_no_secret_waits_for_nothing(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    logs = ChildLogs([SECRET])
    writer = logs.pipe_to(log)
    logs.start()
    os.write(writer, b"loading ...\n" + wrapped(b"z" * 90, 20, "\n") + b" is no secret.\n")
    while not logs.words(log):
        time.sleep(0.01)
    assert logs.words(log)[-1].endswith("is no secret.")
    assert log.read_text().endswith("is no secret.\n")
    os.close(writer)
    logs.close()


def test_a_block_that_does_not_end_is_written_when_the_process_has(tmp_path: Path) -> None:
    assert logged(tmp_path, b"-----BEGIN here\n", b"text\n") == "-----BEGIN here\ntext\n"


KEY = "A1b2" + "x7Kq93mZ/pl+" * 6
KEYS = (KEY, "Zq8'pl&anté7fč3Kd92", "first line 81\nlast\nthe third one 47")


def wrapped(data: bytes, columns: int, end: str) -> bytes:
    text = base64.b64encode(data).decode()
    return end.join(text[at : at + columns] for at in range(0, len(text), columns)).encode()


def folded(text: str) -> bytes:
    return b"\n".join(text[at : at + 20].encode() for at in range(0, len(text), 20))


def framed(data: bytes, before: bytes, after: bytes) -> bytes:
    return b"".join(b"\n" + before + line + after for line in data.split(b"\n")) + b"\n"


@st.composite
def printed(draw: st.DrawFn) -> bytes:
    """What a program prints: keys, on lines of base64, too, and in UTF-16, beside what only looks like them."""
    data = draw(st.sampled_from(KEYS)).encode()
    before = draw(st.sampled_from([b"", b"x", b"hello "]))
    end = draw(st.sampled_from(["\n", "\r\n", "\n    ", "\\n", "\n\n", "\x1b[0m\n"]))
    on_lines = wrapped(before + data, draw(st.sampled_from([1, 8, 64, 76])), end)
    said = [
        data,
        on_lines,
        data.decode().encode("utf-16-le"),
        data.decode().encode("utf-16-be"),
        data.replace(b"\n", b"\r\n"),
    ]
    said += [on_lines[: len(on_lines) // 2], json.dumps(on_lines.decode()).encode(), b"\x1b]0;title\n\x07"]
    said += [
        b"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0B\n-----END PRIVATE KEY-----",
        b"password =\n\n hunter2hunter2",
    ]
    said += [b"Authorization: Bearer\nabcdefgh12345", b"loading", b"A1b2", b"\xc3", "é €".encode(), b"-----BEGIN "]
    said += [framed(on_lines, b"| ", b" |"), framed(data, b"> ", b""), folded(KEY), folded(KEY.encode().hex())]
    parts = draw(st.lists(st.sampled_from([*said, b"\n", b"\r", b" ", b". "]), min_size=1, max_size=8))
    return b"".join(parts) + draw(st.sampled_from([b"", b"\n"]))


@given(printed(), st.data())
@settings(max_examples=120, deadline=None)
def test_a_log_has_what_it_would_have_of_all_in_one_however_it_is_printed(whole: bytes, data: st.DataObject) -> None:
    some = st.lists(st.integers(0, len(whole)), max_size=12).map(sorted)
    ends = [at + 1 for at, byte in enumerate(whole) if byte == ord("\n")]
    cuts = data.draw(some | st.just(ends) | st.just(list(range(len(whole)))))
    with TemporaryDirectory() as folder:
        log = child_logs._Log(Path(folder) / "worker.log", KEYS)
        for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
            log.take(whole[start:end])
        log.close()
        text = (Path(folder) / "worker.log").read_text()
    clean = plain_lines(redact(whole.decode(errors="replace"), KEYS).replace("\r", "\n"))
    assert seen_in(text) == seen_in(clean)


def seen_in(clean: str) -> str:
    """What is left beside secrets. Of lines that a secret has the ends of, a log still makes lines."""
    return clean.replace("[hidden]", "").replace("\n", "")


@pytest.mark.parametrize("spelt", [base64.encodebytes((SECRET * 4).encode()).decode(), f"a\n{SECRET}\nb\n"])
def test_lines_that_are_said_one_by_one_are_hidden_as_in_the_whole(spelt: str) -> None:
    lines = ["Making it.", *spelt.splitlines(), "Made."]
    said = HiddenLines([SECRET * 4, SECRET])
    given = [each for line in lines for each in said.after(line)] + said.rest()
    assert given == redact("\n".join(lines) + "\n", [SECRET * 4, SECRET]).splitlines()
    assert (given[0], given[-1]) == ("Making it.", "Made.")
    assert not any(line in given for line in spelt.splitlines() if len(line) > 8)


@pytest.mark.parametrize(
    "line", ["The endpoint is in service.", "Waiting for a token", "Reset its password", 'the "token"', "model 7"]
)
def test_a_line_that_begins_no_secret_is_given_at_once(line: str) -> None:
    assert HiddenLines([SECRET]).after(line) == [line]


@pytest.mark.parametrize("line", ["password:", "token =", '"password":', "Authorization: Bearer", SECRET[:6]])
def test_a_line_that_may_begin_a_secret_waits_for_the_next(line: str) -> None:
    said = HiddenLines([SECRET])
    assert (said.after(line), said.rest()) == ([], [line])
