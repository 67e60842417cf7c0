"""Spool and spool_state: whatever happens to the file, a reader takes whole frames and nothing else."""

from __future__ import annotations

import errno
import json
import os
import struct
import subprocess
import sys
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.facts.client_use import WorkerUse
from inference_benchmarker.records.batch import HAS_STREAM
from inference_benchmarker.records.batch_writer import BatchWriter
from inference_benchmarker.records.counting import CountingBatchWriter
from inference_benchmarker.records.record import ABANDONED, NONE, OK, Ledger
from inference_benchmarker.wave.spool.spool import BATCH, EVENT, SpoolReader, SpoolWriter, is_locked
from inference_benchmarker.wave.spool.spool_state import SpoolState
from inference_benchmarker.words.units import NS
from tests.waves import use

if TYPE_CHECKING:
    from pathlib import Path

FRAMES = [(EVENT, b'{"event": "x"}'), (BATCH, b""), (BATCH, bytes(range(256))), (EVENT, b"{}")]


def write(path: Path, frames: list[tuple[bytes, bytes]] = FRAMES) -> list[int]:
    """Write the frames; the file's size after each of them."""
    spool = SpoolWriter(path)
    sizes = []
    for kind, data in frames:
        spool._append(kind, data)
        sizes.append(path.stat().st_size)
    spool.close()
    return sizes


def read(path: Path) -> list[tuple[bytes, bytes]]:
    return list(SpoolReader(path).frames())


def test_frames_come_back_as_they_were_written(tmp_path: Path) -> None:
    write(tmp_path / "spool")
    assert read(tmp_path / "spool") == FRAMES


def test_a_tail_cut_off_anywhere_loses_no_whole_frame_and_gives_no_broken_one(tmp_path: Path) -> None:
    path = tmp_path / "spool"
    sizes = write(path)
    whole = path.read_bytes()
    for end in range(len(whole) + 1):
        path.write_bytes(whole[:end])
        assert read(path) == FRAMES[: sum(size <= end for size in sizes)]


def test_a_damaged_byte_anywhere_never_gives_a_frame_that_was_not_written(tmp_path: Path) -> None:
    path = tmp_path / "spool"
    sizes = write(path)
    whole = path.read_bytes()
    for position in range(len(whole)):
        for flip in (0x01, 0x80):
            path.write_bytes(whole[:position] + bytes([whole[position] ^ flip]) + whole[position + 1 :])
            assert read(path) == FRAMES[: sum(size <= position for size in sizes)]


def test_a_damaged_length_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "spool"
    sizes = write(path)
    damaged = bytearray(path.read_bytes())
    damaged[sizes[0] + 5 : sizes[0] + 9] = b"\xff\xff\xff\xff"
    path.write_bytes(damaged)
    assert read(path) == FRAMES[:1]


def test_a_reader_follows_a_growing_file_byte_by_byte(tmp_path: Path) -> None:
    source, path = tmp_path / "source", tmp_path / "spool"
    write(source)
    reader = SpoolReader(path)
    assert list(reader.frames()) == []
    seen = []
    with path.open("ab", buffering=0) as file:
        for byte in source.read_bytes():
            file.write(bytes([byte]))
            seen += list(reader.frames())
    assert seen == FRAMES
    assert list(reader.frames()) == []


def test_a_frame_can_be_read_again_unless_it_was_damaged(tmp_path: Path) -> None:
    path = tmp_path / "spool"
    write(path)
    reader = SpoolReader(path)
    places = [(reader.place, data) for _, data in reader.frames()]
    again = reader.again()
    assert again is not None
    reader.close()
    assert [again.data(place) for place, _ in reversed(places)] == [data for _, data in reversed(places)]
    place, _ = places[1]
    with path.open("r+b") as file:
        file.seek(place + 9)  # the checksum
        file.write(b"?")
    with pytest.raises(ValueError, match="is damaged"):
        again.data(place)


def test_a_spool_is_locked_as_long_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "spool"
    spool = SpoolWriter(path)
    assert is_locked(path)
    with pytest.raises(BlockingIOError):
        SpoolWriter(path)
    spool.close()
    assert not is_locked(path)
    assert not is_locked(path)  # asking takes no lock


def full_disk(monkeypatch: pytest.MonkeyPatch, descriptor: int, room: int) -> None:
    """Let the file behind a descriptor take ``room`` more bytes and no more."""
    real, left, inode = os.write, room, os.fstat(descriptor).st_ino

    def limited(fd: int, data: Any) -> int:
        nonlocal left
        if os.fstat(fd).st_ino != inode:  # the number itself is given to the file that takes over
            return real(fd, data)
        if left == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = real(fd, bytes(data)[:left])
        left -= written
        return written

    monkeypatch.setattr("inference_benchmarker.wave.spool.spool.os.write", limited)


@pytest.mark.parametrize("room", [0, 1, 13, 40])
def test_when_the_disk_is_full_it_goes_on_elsewhere_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = tmp_path / "spool"
    spool = SpoolWriter(path)
    spool.batch(b"first")
    full_disk(monkeypatch, spool._fd, room)
    spool.batch(b"second" * 50)
    spool.batch(b"third")
    spool.close()
    assert spool.error is not None
    assert spool.error.errno == errno.ENOSPC
    assert read(path) == [(BATCH, b"first")]
    assert read(spool.path) == [(BATCH, b"second" * 50), (BATCH, b"third")]
    assert spool.path != path


def test_when_both_disks_are_full_the_error_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    spool = SpoolWriter(tmp_path / "spool")

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("inference_benchmarker.wave.spool.spool.os.write", full)
    with pytest.raises(OSError, match="full"):
        spool.batch(b"x")


def test_a_second_file_that_took_nothing_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    spool = SpoolWriter(tmp_path / "spool")

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patched:
        patched.setattr("inference_benchmarker.wave.spool.spool.os.write", full)
        with pytest.raises(OSError, match="full"):
            spool.batch(b"x")
    spool.close()
    assert list(tmp_path.iterdir()) == [tmp_path / "spool"]


def test_what_comes_after_its_end_is_refused_and_goes_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A greenlet that samples the host, or a second Ctrl-C, may come a moment late."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    spool = SpoolWriter(tmp_path / "spool")
    spool.batch(b"first")
    spool.close()
    with (tmp_path / "other").open("wb"), pytest.raises(OSError, match="closed"):  # it has the number of the spool now
        spool.event(event="client")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "spool"]
    assert (tmp_path / "other").read_bytes() == b""
    assert spool.error is None
    assert read(tmp_path / "spool") == [(BATCH, b"first")]


def test_a_file_size_limit_is_met_like_a_full_disk(tmp_path: Path) -> None:
    program = """
import resource, signal, sys
from pathlib import Path
from inference_benchmarker.wave.spool.spool import SpoolWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
spool = SpoolWriter(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
for _ in range(5):
    spool.batch(b"x" * 30)
print(spool.path)
"""
    path = tmp_path / "spool"
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "File too large" in done.stderr  # the second file reached its limit too, and that is said
    (other,) = (found for found in tmp_path.iterdir() if found != path)
    assert len(read(path)) == len(read(other)) == 2


def _batch(**more: object) -> bytes:
    """An empty batch of a worker that may have anything beside it."""
    meta = {"worker": 0, "at": 1, "final": False, "ledger": Ledger().to_json(), "labels": [], "errors": [], "texts": []}
    text = json.dumps({**meta, **more}).encode()
    return struct.pack("<IIII", len(text), 0, 0, 0) + text


class Wave:
    """A spool as a primary writes it."""

    def __init__(self, path: Path, workers: int = 2) -> None:
        self.spool = SpoolWriter(path)
        self.writers = [BatchWriter() for _ in range(workers)]
        self.spool_state = SpoolState([path], workers)

    def batch(self, worker: int, *, final: bool = False, at: int = 0, **counts: int) -> None:
        ledger = Ledger(**counts).to_json()
        meta = {"worker": worker, "at": at, "final": final, "ledger": ledger, "use": use(cpu_s=0.5, delays_us=[1, 3])}
        self.spool.batch(self.writers[worker].take(meta))


@pytest.fixture
def wave(tmp_path: Path) -> Wave:
    return Wave(tmp_path / "spool.bin")


class TestSpoolState:
    def test_events_tell_the_state_of_the_wave(self, wave: Wave) -> None:
        wave.spool_state.read()
        assert (wave.spool_state.start, wave.spool_state.stop_at, wave.spool_state.ended) == (None, None, False)
        wave.spool.event(event="start", t0=5, wall_ns=9)
        wave.spool.event(event="stop", at=77)
        wave.spool.event(event="lost", worker=1, at=88)
        wave.spool_state.read()
        assert wave.spool_state.start is not None
        assert wave.spool_state.start["t0"] == 5
        assert wave.spool_state.stop_at == 77
        assert [worker.lost_at for worker in wave.spool_state.workers] == [None, 88]
        wave.spool.event(event="end", at=99)
        wave.spool_state.read()
        assert wave.spool_state.ended

    @pytest.mark.parametrize(
        ("cause", "stop_at", "asked"),
        [({}, 77, True), ({"cause": "asked"}, 77, True), ({"cause": "disk_full"}, 77, False)],
        ids=["of an older version", "asked", "full disk"],
    )
    def test_a_stop_is_a_persons_unless_it_says_otherwise(
        self, wave: Wave, cause: dict[str, str], stop_at: int, asked: bool
    ) -> None:
        wave.spool.event(event="stop", at=77, **cause)
        wave.batch(0, final=True)
        wave.spool_state.read()
        assert (wave.spool_state.stop_at, wave.spool_state.stop_asked) == (stop_at, asked)
        assert wave.spool_state.workers[0].final

    def test_a_command_that_is_gone_stopped_nothing(self, wave: Wave) -> None:
        """What was planned is still what was to be sent, and a worker that was ended early is lost."""
        wave.batch(1, final=True)
        wave.spool.event(event="stop", at=77, cause="command_gone")
        wave.batch(0, final=True)
        wave.spool_state.read()
        assert (wave.spool_state.stop_at, wave.spool_state.stop_asked) == (None, False)
        assert [worker.final for worker in wave.spool_state.workers] == [False, True]

    def test_what_is_kept_does_not_grow_with_the_requests(self, wave: Wave) -> None:
        """The rows stay in the file: of 50,000 in 20 batches it would be 2.6 MB."""
        for batch in range(21):
            for number in range(2_500 if batch else 1):
                wave.writers[0].add(1_000_000 * batch + number, 9, 9, 10, 0, NONE, 0, 0, 0)
            wave.batch(0)
            if not batch:
                wave.spool_state.read()
        tracemalloc.start()
        wave.spool_state.read()
        kept, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert wave.spool_state.rows == 50_001
        assert (kept < 50_000, most < 1_000_000) == (True, True)
        assert len(wave.spool_state.records()) == 50_001

    def test_names_are_joined_over_batches(self, wave: Wave) -> None:
        for number, label in enumerate(["a", "b", "a", "c"]):
            writer = wave.writers[0]
            error, _ = writer.error(ValueError("v")) if number % 2 else writer.error(TypeError("t"))
            writer.add(number, 0, 0, 1, 0, NONE, writer.labels[label], error, 1)
            wave.batch(0)
        wave.spool_state.read()
        records = list(wave.spool_state.records())
        assert [record.label for record in records] == ["a", "b", "a", "c"]
        assert [record.error for record in records] == ["TypeError", "ValueError"] * 2
        assert wave.spool_state.texts == {"TypeError": ["t"], "ValueError": ["v"]}

    def test_streams_and_gaps_stay_with_their_requests_over_batches(self, wave: Wave) -> None:
        for number in range(6):
            writer = wave.writers[number % 2]
            if number % 3:
                writer.add(number, 0, 0, 1, 0, NONE, 0, 0, HAS_STREAM)
                writer.add_stream([0, number * 1000, number * 3000], NONE, number)
            else:
                writer.add(number, 0, 0, 1, 0, NONE, 0, 0, 0)
            if number % 4 == 1:
                wave.batch(number % 2)
        wave.batch(0)
        wave.batch(1)
        wave.spool_state.read()
        for record in wave.spool_state.records():
            n = record.index
            assert record.gaps == ((n, 2 * n) if n % 3 else None)
            assert record.tokens_out == (n if n % 3 else None)
            assert record.worker == n % 2

    def test_the_last_report_of_each_worker_counts(self, wave: Wave) -> None:
        wave.batch(0, at=10, sent=3, ok=2)
        wave.batch(1, at=11, sent=4, ok=4)
        wave.batch(0, at=20, sent=5, ok=5, final=True)
        wave.spool_state.read()
        assert wave.spool_state.ledger == Ledger(sent=9, ok=9)
        assert [(worker.at, worker.final) for worker in wave.spool_state.workers] == [(20, True), (11, False)]
        assert [worker.worker_use.cpu_s for worker in wave.spool_state.workers] == [0.5] * 2

    def test_counts_without_an_answer_tell_none(self, wave: Wave) -> None:
        wave.writers[0] = CountingBatchWriter()
        wave.writers[0].add(0, 0, 1_000, 2 * NS, 0, NONE, 0, 0, ABANDONED)
        wave.batch(0)
        wave.spool_state.read()
        assert wave.spool_state.workers[0].last_done is None
        wave.writers[0].add(1, 0, 1_000, NS, 0, NONE, 0, 0, OK)
        wave.batch(0)
        wave.spool_state.read()
        assert wave.spool_state.workers[0].last_done == NS

    def test_a_spool_of_the_version_before_tells_what_it_has(self, wave: Wave) -> None:
        """Its start has neither caps nor host; a report has the CPU and memory beside the ledger, and no ``use``."""
        wave.spool.event(event="start", t0=5, wall_ns=9)
        old = {"at": 7, "final": True, "ledger": Ledger(sent=1, ok=1).to_json(), "cpu_s": 0.5, "max_rss_bytes": 1 << 20}
        wave.writers[0].add(0, 0, 0, 1, 0, NONE, 0, 0, 0)
        for worker in (0, 1):
            wave.spool.batch(wave.writers[worker].take({"worker": worker, **old}))
        wave.spool_state.read()
        assert wave.spool_state.start == {"event": "start", "t0": 5, "wall_ns": 9}
        assert wave.spool_state.ledger == Ledger(sent=2, ok=2)
        assert [worker.worker_use for worker in wave.spool_state.workers] == [WorkerUse()] * 2
        assert len(wave.spool_state.records()) == 1

    def test_each_read_takes_in_what_is_new_only(self, wave: Wave) -> None:
        wave.writers[0].add(0, 0, 0, 1, 0, NONE, 0, 0, 0)
        wave.batch(0)
        for _ in range(2):
            wave.spool_state.read()
            assert (len(wave.spool_state.records()), wave.spool_state.feed.total().ok) == (1, 1)
        wave.writers[0].add(2, 0, 0, 1, 0, NONE, 0, 0, 0)
        wave.batch(0)
        wave.spool_state.read()
        assert (len(wave.spool_state.records()), wave.spool_state.feed.total().ok) == (2, 2)

    def test_a_second_is_whole_when_every_worker_that_still_reports_has_reported_it(self, wave: Wave) -> None:
        wave.batch(0, at=7 * NS + 1)
        wave.batch(1, at=6 * NS - 1)
        wave.spool_state.read()
        assert wave.spool_state.whole_seconds == 5
        wave.batch(0, at=20 * NS)
        wave.spool_state.read()
        assert wave.spool_state.whole_seconds == 17, "nobody waits for ever for one that is silent"
        wave.spool.event(event="lost", worker=1, at=20 * NS)
        wave.spool_state.read()
        assert wave.spool_state.whole_seconds == 20

    @pytest.mark.parametrize(
        "feed", [7, [{}], [{"s": 0, "n": 0, "failed": [9, 1]}], [{"s": 0, "n": 0, "lag": [-1, 1]}]]
    )
    def test_a_forged_feed_is_refused(self, wave: Wave, feed: object) -> None:
        batch = _batch(feed=feed)
        wave.spool.batch(batch)
        with pytest.raises(ValueError, match=r"a (feed|histogram)"):
            wave.spool_state.read()

    def test_a_spool_without_a_feed_is_an_older_versions(self, wave: Wave) -> None:
        wave.spool.batch(_batch())
        wave.spool_state.read()
        assert wave.spool_state.feed.total().sent == 0

    def test_texts_of_a_key_are_few_and_different(self, wave: Wave) -> None:
        for worker in (0, 1):
            for text in ("same", f"w{worker}", f"v{worker}"):
                wave.writers[worker].error(ValueError(text))
            wave.batch(worker)
        wave.spool_state.read()
        assert wave.spool_state.texts == {"ValueError": ["same", "w0", "v0"]}

    def test_it_goes_on_in_the_file_that_took_over(self, wave: Wave, tmp_path: Path) -> None:
        wave.batch(0, sent=1)
        other = SpoolWriter(tmp_path / "other.bin")
        other.event(event="end")
        other.close()
        wave.spool_state.add_spool(tmp_path / "other.bin")
        wave.spool_state.read()
        assert wave.spool_state.ended
        assert wave.spool_state.ledger.sent == 1

    def test_a_wave_without_a_report_has_no_records(self, wave: Wave) -> None:
        wave.spool_state.read()
        assert len(wave.spool_state.records()) == 0
        assert wave.spool_state.ledger == Ledger()

    def test_a_batch_holds_no_more_than_it_says(self, wave: Wave) -> None:
        wave.batch(1, final=True)
        wave.spool_state.read()
        assert json.loads(json.dumps(wave.spool_state.workers[1].ledger.to_json()))["sent"] == 0
        assert wave.spool_state.workers[1].final
