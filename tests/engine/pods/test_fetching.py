"""Results come home whole, whatever breaks: an attendant and a follower, each real, over pipes that are cut."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import signal
import subprocess
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.engine.hosts.transport import Lines
from inference_benchmarker.engine.pods.attendant import Attendant
from inference_benchmarker.engine.pods.draft import MOST_FILES, Draft, ForeignResultsError
from inference_benchmarker.engine.pods.follower import DamagedBlockError, Follower
from inference_benchmarker.engine.pods.objects import FILES
from inference_benchmarker.engine.pods.terms import BLOCK
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.followed import COLUMNS, KEYS, PLACES, SCREEN
from tests.case import case

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inference_benchmarker.engine.hosts.transport import Message

PATIENCE_S = 20
RUN = "20260102T030405Z_benchmark"
SIZES = {
    "requests.parquet": 3 * BLOCK + 17,
    "plan.json": 100,
    "logs/worker_0.log": 0,
    "aiperf/a.json": BLOCK,
    "x.csv": 2 * BLOCK,
}
BLOCKS = 4 + 1 + 1 + 2


class Pod:
    """The first pod, as its script leaves it."""

    def __init__(self, folder: Path) -> None:
        self.said, self.runs = folder / "wave", folder / "runs"
        self.said.mkdir()
        self.runs.mkdir()
        (self.said / "process").write_text("1\n")

    def end(self, code: int = 0, words: str = "Starting 2 workers.\n") -> None:
        (self.said / "words").write_text(words)
        (self.said / "code").write_text(f"{code}\n")

    def fill(self) -> dict[str, bytes]:
        source = random.Random(7)
        contents = {name: source.randbytes(size) for name, size in SIZES.items()}
        for name, content in contents.items():
            path = self.runs / RUN / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return contents

    @contextmanager
    def attended(self) -> Iterator[tuple[Lines, SimpleQueue[Message | None]]]:
        """The command's side of a connection to an attendant, which ends with it."""
        (to_pod, from_here), (to_here, from_pod) = os.pipe(), os.pipe()
        attendant = Thread(target=Attendant(Lines(to_pod, from_pod), self.said, self.runs).run)
        heard: SimpleQueue[Message | None] = SimpleQueue()
        lines = Lines(to_here, from_here)
        lines.start(lambda message, _: heard.put(message), lambda: heard.put(None))
        attendant.start()
        try:
            yield lines, heard
        finally:
            lines.end(PATIENCE_S)
            attendant.join(PATIENCE_S)
            assert not attendant.is_alive()


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    return Pod(tmp_path)


def follow(pod: Pod, follower: Follower, most_blocks: int | None = None) -> None:
    """Follow over one connection, until nothing is left to ask or so many blocks have come."""
    blocks = 0
    with pod.attended() as (lines, heard):
        for begun in follower.begin():
            lines.send(begun)
        while not follower.is_done and blocks != most_blocks:
            message = heard.get(timeout=PATIENCE_S)
            assert message is not None, "the attendant has left"
            for answer in follower.take(message):
                lines.send(answer)
            blocks += message["say"] == "block"


def fetched(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_results_come_home_though_the_connection_is_cut_at_every_block(pod: Pod, tmp_path: Path) -> None:
    contents = pod.fill()
    pod.end(code=3, words="a\nb\nlast, without an end")
    said: list[str] = []
    home, connections = tmp_path / "home", 0
    follower = Follower(said.append, Draft(home, "load"))
    while not follower.is_done:
        follow(pod, follower, most_blocks=1)
        connections += 1
    assert BLOCKS <= connections <= BLOCKS + 2
    assert (follower.code, said) == (3, ["a", "b", "last, without an end"])
    assert follower.results == [home / RUN]
    assert fetched(home) == {f"{RUN}/{name}": content for name, content in contents.items()}
    assert (pod.runs / "fetched").exists()
    assert {path.stat().st_mode & 0o777 for path in home.rglob("*")} == {0o600, 0o700}


def test_what_a_pod_says_names_the_folders_and_files_here(pod: Pod, tmp_path: Path) -> None:
    pod.fill()
    lines = {
        f"Page: /runs/{RUN}/capacity.html": f"Page: {tmp_path}/home/{RUN}/capacity.html",
        f"Folder: /runs/{RUN}": f"Folder: {tmp_path}/home/{RUN}",
        f"{FILES}/lib/f.py, line 3: it failed": "lib/f.py, line 3: it failed",
        f"http://host/runs/{RUN}, http://host{FILES}/f.py, /runs/x, {FILES}/x": None,
    }
    pod.end(words="".join(f"{line}\n" for line in lines))
    said: list[str] = []
    follow(pod, Follower(said.append, Draft(tmp_path / "home", "load")))
    assert said == [line if here is None else here for line, here in lines.items()]


def test_another_command_goes_on_where_one_was_cut_off(pod: Pod, tmp_path: Path) -> None:
    contents = pod.fill()
    pod.end()
    first = Follower(lambda _: None, Draft(tmp_path / "home", "load"))
    follow(pod, first, most_blocks=3)
    (draft,) = (tmp_path / "home").iterdir()
    largest = max(draft.rglob("*.*"), key=lambda path: path.stat().st_size)
    with largest.open("ab") as file:  # a block that was cut off while it was written
        file.write(b"x" * 100)
    second = Follower(lambda _: None, Draft(tmp_path / "home", "load"))
    follow(pod, second)
    assert second.progress - 2 == BLOCKS - 3
    assert fetched(tmp_path / "home") == {f"{RUN}/{name}": content for name, content in contents.items()}


def test_a_run_that_is_here_is_not_replaced(pod: Pod, tmp_path: Path) -> None:
    pod.fill()
    pod.end()
    (tmp_path / "home" / RUN).mkdir(parents=True)
    follower = Follower(lambda _: None, Draft(tmp_path / "home", "load"))
    follow(pod, follower)
    assert follower.results == [tmp_path / "home" / f"{RUN}-2"]


def test_a_wave_without_results_is_done_with_its_last_words(pod: Pod, tmp_path: Path) -> None:
    pod.end(code=2, words="benchmark: no\n")
    (pod.runs / "other").mkdir()
    (pod.runs / RUN).symlink_to("/etc")
    earlier = pod.runs / "20250102T030405Z_benchmark"  # of another wave, on a volume that stays
    earlier.mkdir()
    (earlier / "plan.json").touch()
    os.utime(earlier, (0, 0))
    said: list[str] = []
    follower = Follower(said.append, Draft(tmp_path / "home", "load"))
    follow(pod, follower)
    assert (follower.code, said, follower.results, fetched(tmp_path / "home")) == (2, ["benchmark: no"], [], {})


def test_words_come_by_whole_lines_while_the_wave_goes_on(pod: Pod, tmp_path: Path) -> None:
    said: list[str] = []
    follower = Follower(said.append, Draft(tmp_path / "home", "load"))
    words = pod.said / "words"
    with pod.attended() as (lines, heard):
        lines.send(follower.begin()[0])
        for text, expected in (("one\ntw", ["one"]), ("one\ntwo\n", ["one", "two"])):
            words.write_text(text)
            while said != expected:
                message = heard.get(timeout=PATIENCE_S)
                assert message is not None
                follower.take(message)


def test_the_panel_keys_and_places_go_between_a_wave_and_its_follower_also_before_it_has_begun(pod: Pod) -> None:
    panel = [[["3s", "bold"]]]
    pod.said.joinpath("process").unlink()
    pod.said.rmdir()
    with pod.attended() as (lines, heard):
        for asked in (
            {"do": "places", "nodes": {"a": {"zone": "b"}}},
            {"do": "columns", "columns": 132},
            {"do": "keys", "keys": "+"},
            {"do": "keys", "keys": "-"},
            {"do": "fetched"},
        ):
            lines.send(asked)
        while (message := heard.get(timeout=PATIENCE_S)) is None or message["say"] != "confirmed":
            assert message is not None, "the attendant has left"
        left = {path.name: path.read_text() for path in pod.said.iterdir()}
        assert left == {PLACES: '{"a": {"zone": "b"}}', COLUMNS: "132", KEYS: "+-"}
        (pod.said / SCREEN).write_text("[[[")  # half of it
        os.utime(pod.said / SCREEN, (1, 1))
        (pod.said / SCREEN).write_text(json.dumps(panel))
        while (message := heard.get(timeout=PATIENCE_S)) is None or message["say"] != "screen":
            assert message is not None, "the attendant has left"
    assert message["lines"] == panel


def test_a_wave_that_is_to_end_before_it_has_begun_ends_as_soon_as_it_has(pod: Pod) -> None:
    (pod.said / "process").unlink()
    with subprocess.Popen(["sleep", "60"]) as wave:
        try:
            with pod.attended() as (lines, heard):
                for asked in ({"do": "end"}, {"do": "fetched"}):
                    lines.send(asked)
                while (message := heard.get(timeout=PATIENCE_S)) is None or message["say"] != "confirmed":
                    assert message is not None, "the attendant has left"
                (pod.said / "process").write_text(f"{wave.pid}\n")
                assert wave.wait(PATIENCE_S) == -signal.SIGTERM
        finally:
            wave.kill()


def block(name: str, at: int, data: bytes, digest: str | None = None) -> dict[str, Any]:
    return {
        "say": "block",
        "file": name,
        "at": at,
        "data": base64.b64encode(data).decode(),
        "sha256": digest or hashlib.sha256(data).hexdigest(),
    }


def test_a_block_that_is_not_as_it_was_sent_is_not_taken(tmp_path: Path) -> None:
    name, data = f"{RUN}/plan.json", b"x" * 100
    rows = {
        "another digest": block(name, 0, data, hashlib.sha256(b"y").hexdigest()),
        "too short": block(name, 0, data[:50]),
        "too long": block(name, 0, data + b"x"),
        "another place": block(name, 50, data[50:]),
        "another file": block(f"{RUN}/other.json", 0, data),
        "no text": {**block(name, 0, data), "data": 3},
        "no base64": {**block(name, 0, data), "data": "*"},
    }
    for what, message in rows.items():
        with case(what):
            follower = Follower(lambda _: None, Draft(tmp_path, "load"))
            follower.take({"say": "files", "files": {name: 100}})
            with pytest.raises(DamagedBlockError):
                follower.take(message)
            assert fetched(tmp_path) == {}


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "/etc/passwd",
        RUN,
        f"{RUN}/../x",
        f"{RUN}//x",
        f"{RUN}/./x",
        f"{RUN}/.x",
        f"{RUN}/a\nb",
        f"{RUN}/-x",
        f"{RUN}/{'x' * 200}",
        f"other/{RUN}",
        f"{RUN}/a/b/c/d/e/f",
        f"{RUN}/x\0",
        "",
    ],
)
def test_a_file_that_leads_elsewhere_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ForeignResultsError):
        Draft(tmp_path / "home", "load").expect({name: 1})
    assert not (tmp_path / "home").exists()


def test_strange_sizes_and_too_many_files_are_refused(tmp_path: Path) -> None:
    strange: list[dict[str, object]] = [{f"{RUN}/x": size} for size in (-1, "1", None, 1.5)]
    strange.append({f"{RUN}/{number}": 0 for number in range(MOST_FILES + 1)})
    for files in strange:
        with pytest.raises(ForeignResultsError):
            Draft(tmp_path, "load").expect(files)
    with pytest.raises(BenchmarkError, match=r"the results have .* and .* are free"):
        Draft(tmp_path, "load").expect({f"{RUN}/x": 1 << 60})
