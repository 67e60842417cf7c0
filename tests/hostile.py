"""What somebody may do to a run directory before he hands it on: other values, flipped bytes, links, pipes, devices."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import socket
import time
import traceback
import warnings
from collections import Counter
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from inference_benchmarker.cli import main
from inference_benchmarker.facts.aborted import Aborted
from inference_benchmarker.facts.server_metric import ServerMetric
from inference_benchmarker.plan.abort_on import AbortOn
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.wave import writer
from inference_benchmarker.wave.plan_file import save_plan
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.wave.spool.spool import EVENT, SpoolReader, SpoolWriter
from inference_benchmarker.wave.wave import Wave
from inference_benchmarker.words.units import NS
from server_capacity.aiperf.export import AiperfResult
from tests.spools import drawn_again, steered
from tests.waves import make_run, observe, on_time, open_plan, spooled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

ESCAPES = "\x1b[2J\nVALID\u202e\u2028\x9b31m\ud800<script>alert(1)</script>"
VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 10**9, 10**18, (1 << 63) - 1, 1 << 63, 10**39, -1e308, 1e308, 1e-300),
    *("", "x", ESCAPES, "1e-300", "1e308", "NaN", [], [[]], {}, {"a": []}, [None], ["x"] * 3),
)
TEXTS = (
    *("", "{", "[]", "null", "NaN", '{"schema_version": 1}', '{"schema_version": NaN}', "[" * 100_000),
    *('{"a":' * 100_000, '{"schema_version": 1' + "0" * 10_000 + "}", '"\\ud800"', "\ufeff{}", "\0" * 100),
    *('{"schema_version": 1, "schema_version": 2}', "[" + "[]," * 5_000_000 + "[]]", "a,b\n" * 1000, "\x1b[2J"),
)
CELLS = (b"1e308", b"-1e308", b"nan", b"", b"x" * 200_000, b'"', b"\x1b[2J", b"\xff", b"9" * 20)
METRICS = (float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 5e-324, 1e99, -1e99, 0.0, -1.0, None)
NUMBERS = (0, 1, (1 << 63) - 1, 1 << 62, -(1 << 63), -1, 10**17, 10**16, 86_400 * 60 * 10**9)


def paths_of(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every value in a JSON document."""
    yield here
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from paths_of(member, (*here, key))


def with_value(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """The document with another value at a place."""
    if not path:
        return value
    changed = document.copy()
    changed[path[0]] = with_value(document[path[0]], path[1:], value)
    return changed


def without(document: Any, path: tuple[Any, ...]) -> Any:
    """The document without the value at a place."""
    changed = document.copy()
    if len(path) == 1:
        del changed[path[0]]
    else:
        changed[path[0]] = without(document[path[0]], path[1:])
    return changed


def as_link(path: Path, outside: Path) -> None:
    path.symlink_to(outside)


def as_zeros(path: Path, outside: Path) -> None:
    """A link to a device that never ends."""
    path.symlink_to("/dev/zero")


def as_pipe(path: Path, outside: Path) -> None:
    """A pipe that nobody writes to."""
    os.mkfifo(path)


def as_folder(path: Path, outside: Path) -> None:
    path.mkdir()


def as_loop(path: Path, outside: Path) -> None:
    path.symlink_to(path.name)


def as_sparse(path: Path, outside: Path) -> None:
    """A huge file that takes no room."""
    with path.open("wb") as file:
        file.truncate(1 << 42)


def as_socket(path: Path, outside: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener, chdir(path.parent):  # a whole path may be too long for one
        listener.bind(path.name)


DISGUISES: tuple[Callable[[Path, Path], None], ...] = (
    *(as_link, as_zeros, as_pipe, as_folder, as_loop, as_sparse, as_socket),
)


def disguise(path: Path, how: Callable[[Path, Path], None], outside: Path) -> None:
    """Put something else in a file's or folder's place."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    how(path, outside)


def honest_runs(folder: Path) -> list[Path]:
    """Waves stored and cut off: one with all that a run directory may hold, steered ones, clients that repeat."""
    make_run(folder / "plain", 120, failed=3)
    _full_run(folder / "full")
    cut, whole, done = spooled(folder, silent=1, ended=False), spooled(folder), spooled(folder)
    Wave.load(done.path)
    again, stored, changed, ended = (
        drawn_again(folder),
        drawn_again(folder),
        steered(folder, "all killed"),
        steered(folder),
    )
    for each in (stored, ended):
        Wave.load(each.path)
    _aborted_run(folder / "aborted")
    runs = (cut, whole, done, again, stored, changed, ended)
    return [folder / "plain", folder / "full", folder / "aborted", *(each.path for each in runs)]


def _aborted_run(path: Path) -> None:
    """With values of the user's own, and ended by a condition."""
    path.mkdir()
    abort_on, limits = (AbortOn.parse("success<50%@10s"),), (Slo.parse("metric.hit.mean>=0.7"),)
    plan = open_plan("10", "25", slos=limits, abort_on=abort_on, factory_settings={"SERVER": "http://h", "PATH": "/a"})
    rows = [each._replace(metrics={"hit": float(each.index % 10 < 5), "rows": 1.5}) for each in on_time(plan)]
    facts = observe(plan, rows, stopped_at=20 * NS, aborted=Aborted(abort_on[0].text, 0.3, 100, 10))
    wave = Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__})
    save_plan(RunDir(path), plan, {})
    writer.save(wave, RunDir(path))


def _full_run(path: Path) -> None:
    wave = make_run(path, 2500, stream=True, failed=5, name="full")
    times = {"start": 1.7e9, "end": 1.7e9 + 25, "series_of": "Average", "series": ((1.7e9, 1.0), (1.7e9 + 10, 2.0))}
    metric = ServerMetric("cloudwatch", "ModelLatency", {"Average": 312.4, "p99": None}, "Microseconds", "ns", **times)  # type: ignore[arg-type]  # by their names
    metric = replace(metric, dimensions={"a": "b"}, reason="why", instances=((1.7e9, 1.0),))
    other = replace(metric, name="CPUUtilization", unit="Percent")
    writer.save_server_metrics(wave.with_server_metrics([metric, other]))
    folder = path / "aiperf"
    folder.mkdir()
    of_times = {"latency": {"mean": 0.1, "p50": 0.1}}
    counts = (1.7e9, 25.0, 100, 99, of_times, 5, 6, 7.0, {"X 500": 1}, 0.95)
    AiperfResult("0.3", *counts, str(folder), server_metrics=(metric,)).save()
    begin = 17 * 10**17
    spans = [{"session_num": n, "request_start_ns": begin + n, "request_end_ns": begin + 9} for n in range(5)]
    rows = [{"metadata": span} for span in spans]
    (folder / "profile_export.jsonl").write_text("\n".join(map(json.dumps, rows)))
    statistics = {
        "request_latency": {"unit": "ms", "avg": 5.0, "p50": 4.0},
        "request_throughput": {"avg": 3.0},
        "input_config": {"phases": [{"duration": 5, "grace_period": 4}]},
        "start_time": "2026-01-01T00:00:00",
        "end_time": "2026-01-01T00:00:09",
    }
    (folder / "profile_export_aiperf.json").write_text(json.dumps(statistics))
    (path / "client.csv").write_text("unix_s,process,cpu_percent\n1700000001,host,5.0\n1700000002,worker 0,6.0\n")
    for name in ("locust_stats/locust_stats.csv", "logs/worker_0.log"):
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_text("a,b\n")


def make_hostile(run: Path, draw: random.Random, outside: Path) -> str:
    """Do one thing or two to a run directory; what it was."""
    done = [draw.choice(_DEEDS)(run, draw, outside) for _ in range(draw.choice((1, 1, 1, 2)))]
    return " and ".join(done)[:400]


def _files(run: Path, *suffixes: str) -> list[Path]:
    found = [path for path in sorted(run.rglob("*")) if path.is_file() and not path.is_symlink()]
    return [path for path in found if path.stat().st_size < 1e8 and (not suffixes or path.suffix in suffixes)]


def _disguised(run: Path, draw: random.Random, outside: Path) -> str:
    target, how = draw.choice(sorted(run.rglob("*"))), draw.choice(DISGUISES)
    disguise(target, how, outside)
    return f"{target.name} {how.__name__}"


def _draft(run: Path, draw: random.Random, outside: Path) -> str:
    target = draw.choice(_files(run) or [run / "summary.txt"])
    disguise(target.with_name(f"{target.name}.part"), draw.choice(DISGUISES), outside)
    return f"{target.name}.part"


def _value(run: Path, draw: random.Random, outside: Path) -> str:
    target = draw.choice(_files(run, ".json") or [run / "none"])
    try:
        document = json.loads(target.read_text())
    except (OSError, ValueError, RecursionError):
        return "nothing"
    place, value = draw.choice(list(paths_of(document))), draw.choice(VALUES)
    missing = place and draw.random() < 0.2
    changed = without(document, place) if missing else with_value(document, place, value)
    target.write_text(json.dumps(changed))
    return f"{target.name} {place} {'missing' if missing else repr(value)}"


def _text(run: Path, draw: random.Random, outside: Path) -> str:
    target, text = draw.choice(_files(run) or [run / "none"]), draw.choice(TEXTS)
    target.write_bytes(text.encode("utf-8", "surrogatepass"))
    return f"{target.name} is {text[:40]!r}"


def _bytes(run: Path, draw: random.Random, outside: Path) -> str:
    target = draw.choice(_files(run) or [run / "none"])
    data = bytearray(target.read_bytes()) if target.exists() else bytearray(b"x")
    if draw.random() < 0.3:
        del data[draw.randrange(len(data) + 1) :]
    for _ in range(draw.choice((0, 1, 3, 30)) if data else 0):
        data[draw.randrange(len(data))] = draw.randrange(256)
    target.write_bytes(data)
    return f"{target.name} has other bytes"


def _line(run: Path, draw: random.Random, outside: Path) -> str:
    """Forge a line of a file of JSON lines."""
    target = draw.choice(_files(run, ".jsonl") or [run / "none"])
    try:
        lines = [json.loads(line) for line in target.read_text().splitlines()]
    except (OSError, ValueError, RecursionError):
        return "nothing"
    number, value = draw.randrange(len(lines)), draw.choice(VALUES)
    place = draw.choice(list(paths_of(lines[number])))
    lines[number] = with_value(lines[number], place, value)
    target.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"{target.name} line {number} {place} {value!r}"


def _column(run: Path, draw: random.Random, outside: Path) -> str:
    """Forge a number of ``requests.parquet``."""
    target = run / "requests.parquet"
    try:
        table = pq.read_table(target)
    except (OSError, ValueError):
        return "nothing"
    name = draw.choice(("attempt", "attempt", "index", "due", "sent", "done", "worker", "tokens_out", "chunks"))
    values, most = table.column(name).to_pylist(), 65535 if name in ("attempt", "worker") else NUMBERS[2]
    places = draw.sample(range(len(values)), min(draw.choice((1, 2, len(values))), len(values)))
    for place in places:
        values[place] = draw.choice((0, 1, 2, 3, most, most // 2))
    field = table.schema.field(name)
    pq.write_table(table.set_column(table.column_names.index(name), field, pa.array(values, field.type)), target)
    return f"{name} of rows {places[:3]}"


def _metric(run: Path, draw: random.Random, outside: Path) -> str:
    """Forge a value of the user's own, or the name of them all."""
    target = run / "requests.parquet"
    try:
        table = pq.read_table(target)
        name = draw.choice([each for each in table.column_names if each.startswith("metric.")])
    except (OSError, ValueError, IndexError):
        return "nothing"
    values = table.column(name).to_pylist()
    for place in draw.sample(range(len(values)), min(draw.choice((1, 2, len(values))), len(values))):
        values[place] = draw.choice(METRICS)
    called = draw.choice((name, name, "metric.", "metric.<b>", "metric." + "x" * 100))
    place = table.column_names.index(name)
    column = pa.array(values, pa.float64())
    pq.write_table(table.set_column(place, pa.field(called, pa.float64()), column), target)
    return f"{name} is {called}"


def _cell(run: Path, draw: random.Random, outside: Path) -> str:
    target, value = draw.choice(_files(run, ".csv", ".jsonl") or [run / "none"]), draw.choice(CELLS)
    cells = target.read_bytes().split(b",") if target.exists() else [b""]
    cells[draw.randrange(len(cells))] = value
    target.write_bytes(b",".join(cells))
    return f"{target.name} has a cell {value[:20]!r}"


def _frame(run: Path, draw: random.Random, outside: Path) -> str:
    """Forge a frame of the spool: its JSON, its sizes, its rows."""
    path = run / "spool.bin"
    frames = list(SpoolReader(path).frames()) if path in _files(run) else []
    if not frames:
        return "nothing"
    number = draw.randrange(len(frames))
    kind, data = frames[number]
    sizes, head, rest = ([], data, b"") if kind == EVENT else _parts(data)
    document = json.loads(head)
    place, value = draw.choice(list(paths_of(document))), draw.choice((*VALUES, *NUMBERS))
    deed = draw.choice(("head", "rows", "sizes")) if rest else "head"
    if deed == "head":
        head = json.dumps(with_value(document, place, value)).encode()
        sizes = [len(head), *sizes[1:]] if sizes else []
    elif deed == "rows":
        at, value = draw.randrange(max(len(rest) - 8, 1)), draw.choice(NUMBERS)
        rest = rest[:at] + (value % (1 << 64)).to_bytes(8, "little") + rest[at + 8 :]
    else:
        sizes[draw.randrange(4)] = draw.choice((0, 1, 51, 1 << 31, (1 << 32) - 1))
    frames[number] = (kind, b"".join(size.to_bytes(4, "little") for size in sizes) + head + rest)
    write_frames(path, frames)
    return f"frame {number} {deed} {place} {value!r}"


def _parts(data: bytes) -> tuple[list[int], bytes, bytes]:
    sizes = [int.from_bytes(data[4 * n : 4 * n + 4], "little") for n in range(4)]
    return sizes, data[16 : 16 + sizes[0]], data[16 + sizes[0] :]


def write_frames(path: Path, frames: Sequence[tuple[bytes, bytes]]) -> None:
    """A spool of these frames, with right checksums."""
    path.unlink(missing_ok=True)
    spool = SpoolWriter(path)
    for kind, data in frames:
        spool._append(kind, data)
    spool.close()


_DEEDS = (
    *(_disguised, _disguised, _draft, _value, _value, _value, _value, _text, _bytes, _cell),
    *(_frame, _frame, _frame, _line, _column, _metric),
)

BYSTANDER = b"alias ls=ls\n"

SLOW_S = 30.0  # on a busy machine; it is a fraction of a second elsewhere


class Fuzz:
    """Honest run directories and one of them made hostile, which a command is to read; outside lies a file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._honest = honest_runs(folder / "honest")
        self._bystander = folder / "bystander"
        self._out = folder / "out"
        self._out.mkdir()
        self._bystander.write_bytes(BYSTANDER)
        self.codes: Counter[object] = Counter()

    def attempt(self, seed: int) -> tuple[str, str | None]:
        """What was done to a run directory and asked of it, and what was wrong about the outcome."""
        draw = random.Random(seed)
        base, run = draw.choice(self._honest), self._folder / "run"
        if run.exists():
            shutil.rmtree(run)
        shutil.copytree(base, run)
        reported = make_hostile(run, draw, self._bystander)
        arguments = draw.choice(self._commands(run))
        before = self._outside()
        wrong = self._problem(arguments)
        if wrong is None and (self._outside() != before or self._bystander.read_bytes() != BYSTANDER):
            wrong = "something outside was written"
        return f"{base.name}: {reported}\n{arguments}", wrong

    def _commands(self, run: Path) -> list[list[str]]:
        other, out = str(self._honest[1]), self._out
        files = ["--markdown", str(out / "c.md"), "--junit", str(out / "c.xml")]
        return [
            ["report", str(run)],
            ["report", str(run), "--json"],
            ["report", str(run), "--format", "html", "--output", str(out / "r.html")],
            *(["report", str(run), "--format", form] for form in ("markdown", "junit", "csv")),
            ["--plot", str(run), other, "--plot-format", "html"],
            ["--plot", other, str(run), "--plot-format", "html", "--plot-output-dir", str(out)],
            ["--compare", str(run), other, *files],
            ["--compare", other, str(run)],
        ]

    def _outside(self) -> set[Path]:
        inside = (self._folder / "run", self._out)
        return {path for path in self._folder.rglob("*") if not any(map(path.is_relative_to, inside))}

    def _problem(self, arguments: list[str]) -> str | None:
        out, err = io.StringIO(), io.StringIO()
        begun = time.monotonic()
        with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                code = main(arguments)
            except BaseException:
                return f"raised {traceback.format_exc()}"
        self.codes[code] += 1
        said = err.getvalue()
        if code not in (0, 1, 2, 3, 130) or "Traceback" in said:
            return f"exit code {code}\n{said}"
        refused = said.startswith("benchmark: ") and out.getvalue() == ""
        if code == 2 and not (refused or arguments[0] == "--plot"):  # which shows the other run
            return f"exit code 2 with {said!r}"
        if not all(c.isprintable() or c in "\n\t" for c in out.getvalue()):
            return f"printed {out.getvalue()!r}"
        return f"took {time.monotonic() - begun:.1f} s" if time.monotonic() - begun > SLOW_S else None


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every number within a JSON object."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from leaves(part, (*path, key))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path
