"""Reads run directories that were made hostile, for as long as it is told: ``python -m tests.fuzz_run_dir SECONDS``.

Each must end with exit code 0, 1, 2 or 3 within seconds, without a traceback, and with nothing written outside.
"""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from inference_benchmarker.cli import main
from inference_benchmarker.cli import dispatch
from inference_benchmarker.spool import BATCH, EVENT, SpoolReader, SpoolWriter
from tests.hostile import DISGUISES, TEXTS, VALUES, disguise, dump, paths_of, with_value, without
from tests.made_runs import make_run
from tests.test_run_dir import spooled

SLOW_S = 20.0


def base_runs(folder: Path) -> list[Path]:
    """A stored wave, a stored stream with server metrics and aiperf, and one that was cut off."""
    from inference_benchmarker.usage import ProcessUse, HostUse
    from dataclasses import replace
    from server_capacity.metrics import ServerMetric
    from inference_benchmarker.wave import Wave
    from server_capacity.aiperf_export import AiperfResult

    make_run(folder / "plain", 120, failed=3)
    wave = make_run(folder / "rich", 2500, stream=True, failed=5, name="rich")
    run_dir = wave.run_dir
    metric = ServerMetric("cloudwatch", "ModelLatency", {"Average": 312.4, "p99": None}, "Microseconds", "ns", {"a": "b"},
        1.7e9, 1.7e9 + 25, reason="why", series_of="Average", series=((1.7e9, 1.0), (1.7e9 + 10, 2.0)), instances=((1.7e9, 1.0),))
    wave = wave.with_server_metrics([metric, replace(metric, name="CPUUtilization", unit="Percent")])
    wave.store_server_metrics()
    (folder / "rich" / "aiperf").mkdir()
    AiperfResult("0.3", 1.7e9, 25.0, 100, 99, {"latency": {"mean": 0.1, "p50": 0.1}}, 5, 6, 7.0, {"X 500": 1}, 0.95,
        str(folder / "rich" / "aiperf"), server_metrics=(metric,)).save()
    rows = [{"metadata": {"session_num": n, "benchmark_phase": "profiling", "request_start_ns": 17 * 10**17 + n, "request_end_ns": 17 * 10**17 + n + 9}, "error": None} for n in range(5)]
    (folder / "rich" / "aiperf" / "profile_export.jsonl").write_text("\n".join(map(json.dumps, rows)))
    stats = {"aiperf_version": "0.3", "request_latency": {"unit": "ms", "avg": 5.0, "p50": 4.0, "p99": 9.0}, "total_isl": {"avg": 5}, "input_config": {"phases": [{}]},
        "request_throughput": {"avg": 3.0}, "start_time": "2026-01-01T00:00:00", "end_time": "2026-01-01T00:00:09"}
    (folder / "rich" / "aiperf" / "profile_export_aiperf.json").write_text(json.dumps(stats))
    (folder / "rich" / "client.csv").write_text("unix_s,process,cpu_percent,memory_bytes\n1700000001,host,5.0,1\n1700000002,worker 0,6.0,1\n")
    (folder / "rich" / "locust_stats").mkdir()
    (folder / "rich" / "locust_stats" / "locust_stats.csv").write_text("a,b\n")
    (folder / "rich" / "logs").mkdir()
    (folder / "rich" / "logs" / "worker_0.log").write_text("x\n")
    cut = spooled(folder, silent=1, ended=False)
    whole = spooled(folder)
    # with all of a real client's facts in summary.json
    done = spooled(folder)
    Wave.load(done.path)
    return [folder / "plain", folder / "rich", cut.path, whole.path, done.path]


def spool_frames(path: Path) -> list[tuple[bytes, bytes]]:
    return list(SpoolReader(path).frames())


def write_frames(path: Path, frames: list[tuple[bytes, bytes]]) -> None:
    path.unlink()
    spool = SpoolWriter(path)
    for kind, data in frames:
        spool._append(kind, data)
    spool.close()


def mutate(run: Path, draw: random.Random, outside: Path) -> str:
    """Do one thing to a run directory; what it was."""
    files = sorted(path for path in run.rglob("*"))
    target = draw.choice(files)
    told = str(target.relative_to(run))
    kind = draw.choice(["disguise", "value", "value", "value", "value", "missing", "text", "flip", "cut", "draft", "frame", "frame", "csv", "two"])
    if kind == "two":
        return mutate(run, draw, outside) + " + " + mutate(run, draw, outside)
    if kind == "disguise":
        how = draw.choice(DISGUISES)
        disguise(target, how, outside)
        return f"{told} {how.__name__}"
    if kind == "draft":
        names = [path for path in files if path.is_file()]
        target = draw.choice(names)
        disguise(target.with_name(target.name + ".part"), draw.choice(DISGUISES), outside)
        return f"{told}.part"
    if kind in ("value", "missing"):
        documents = [path for path in files if path.suffix == ".json" and path.is_file() and not path.is_symlink() and path.stat().st_size < 1e7]
        if not documents:
            return "nothing"
        target = draw.choice(documents)
        try:
            document = json.loads(target.read_text())
        except ValueError:
            return "nothing"
        place = draw.choice(list(paths_of(document)))
        value = draw.choice(VALUES)
        if kind == "missing" and place:
            target.write_bytes(dump(without(document, place)))
            return f"{target.name} without {place}"
        target.write_bytes(dump(with_value(document, place, value)))
        return f"{target.name} {place} = {value!r}"[:300]
    plain = [path for path in files if path.is_file() and not path.is_symlink() and path.stat().st_size < 1e8]
    if not plain:
        return "nothing"
    target = draw.choice(plain)
    if kind == "text":
        text = draw.choice(TEXTS)
        target.write_bytes(text.encode("utf-8", "surrogatepass"))
        return f"{target.name} text {text[:40]!r}"
    data = bytearray(target.read_bytes())
    if kind == "cut":
        del data[draw.randrange(len(data) + 1) :]
    elif kind == "csv" and target.suffix in (".csv", ".jsonl"):
        cells = data.split(b",")
        cells[draw.randrange(len(cells))] = draw.choice([b"1e308", b"-1e308", b"nan", b"", b"x" * 200_000, b'"', b"\x1b[2J", b"\xff", b"99999999999999999999"])
        data = bytearray(b",".join(cells))
    elif kind == "frame" and (run / "spool.bin").is_file() and not (run / "spool.bin").is_symlink():
        return mutate_frame(run / "spool.bin", draw)
    else:
        for _ in range(draw.choice([1, 1, 3, 30])):
            if data:
                data[draw.randrange(len(data))] = draw.randrange(256)
    target.write_bytes(data)
    return f"{target.name} {kind}"


def mutate_frame(path: Path, draw: random.Random) -> str:
    """Forge a frame: its JSON, its sizes, its rows."""
    frames = spool_frames(path)
    if not frames:
        return "nothing"
    number = draw.randrange(len(frames))
    kind, data = frames[number]
    if kind == EVENT:
        document = json.loads(data)
        place, value = draw.choice(list(paths_of(document))), draw.choice(VALUES)
        frames[number] = (kind, dump(with_value(document, place, value)))
        told = f"event {place} = {value!r}"
    else:
        sizes = [int.from_bytes(data[4 * n : 4 * n + 4], "little") for n in range(4)]
        head = data[16 : 16 + sizes[0]]
        rest = bytearray(data[16 + sizes[0] :])
        told = "batch "
        match draw.choice(["head", "head", "rows", "rows", "sizes"]):
            case "head":
                document = json.loads(head)
                place, value = draw.choice(list(paths_of(document))), draw.choice(VALUES)
                head = dump(with_value(document, place, value))
                sizes[0] = len(head)
                told += f"{place} = {value!r}"
            case "rows" if rest:
                at = draw.randrange(max(len(rest) - 8, 1))
                value = draw.choice([0, 1, (1 << 63) - 1, 1 << 62, -(1 << 63), -1, 10**17, 10**16, 86_400 * 10**9 * 60])
                rest[at : at + 8] = (value % (1 << 64)).to_bytes(8, "little")
                told += f"row bytes {at} = {value}"
            case _:
                sizes[draw.randrange(4)] = draw.choice([0, 1, 51, 1 << 31, (1 << 32) - 1])
                told += f"sizes {sizes}"
        frames[number] = (BATCH, b"".join(size.to_bytes(4, "little") for size in sizes) + head + bytes(rest))
    write_frames(path, frames)
    return told[:300]


def command(run: Path, others: list[Path], draw: random.Random, out: Path) -> list[str]:
    match draw.choice(["report", "report", "json", "plot", "compare", "compare back"]):
        case "report":
            return ["report", str(run)]
        case "json":
            return ["report", str(run), "--json"]
        case "plot":
            return ["--plot", str(run), str(others[1]), "--plot-format", "html", *(["--plot-output-dir", str(out)] if draw.random() < 0.5 else [])]
        case "compare":
            return ["--compare", str(run), str(others[1]), "--markdown", str(out / "c.md"), "--junit", str(out / "c.xml")]
        case _:
            return ["--compare", str(others[1]), str(run)]


def problem_of(arguments: list[str], outside: dict[Path, bytes]) -> str | None:
    """Run a command in this process; what was wrong about it."""
    out, err = io.StringIO(), io.StringIO()
    begun = time.monotonic()
    with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            code: object = dispatch.main(arguments)
        except SystemExit as ended:
            code = ended.code
        except BaseException:
            return "raised " + traceback.format_exc()
    took = time.monotonic() - begun
    printed = out.getvalue()
    if code not in (0, 1, 2, 3, 130) or "Traceback" in err.getvalue():
        return f"exit {code}\n{err.getvalue()}"
    if code == 2 and not err.getvalue().startswith("benchmark: "):
        return f"exit 2 with {err.getvalue()!r}"
    if any(not (c.isprintable() or c in "\n\t") for c in printed):
        return f"printed {printed!r}"
    if took > SLOW_S:
        return f"took {took:.1f} s"
    if any(path.read_bytes() != content for path, content in outside.items()):
        return "wrote outside"
    return None


def fuzz(seconds: float, seed: int) -> int:
    draw = random.Random(seed)
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bases = base_runs(folder / "base")
        secret = folder / "secret"
        secret.write_bytes(b"alias ls=ls\n")
        (folder / "out").mkdir()
        ended, count = time.monotonic() + seconds, 0
        while time.monotonic() < ended:
            count += 1
            state = draw.getrandbits(64)
            one = random.Random(state)
            base = one.choice(bases)
            run = folder / "run"
            if run.exists():
                shutil.rmtree(run)
            shutil.copytree(base, run)
            told = mutate(run, one, secret)
            arguments = command(run, bases, one, folder / "out")
            before = sorted(path for path in folder.rglob("*") if run not in path.parents and (folder / "out") not in path.parents)
            wrong = problem_of(arguments, {secret: b"alias ls=ls\n"})
            after = sorted(path for path in folder.rglob("*") if run not in path.parents and (folder / "out") not in path.parents)
            if wrong is None and before != after:
                wrong = f"made {set(after) ^ set(before)}"
            if wrong:
                failures += 1
                print(f"--- {count} {base.name}: {told}\n{arguments}\n{wrong[-1500:]}", flush=True)
        print(f"{count} run directories, {failures} failures", flush=True)
    return failures


if __name__ == "__main__":
    sys.exit(bool(fuzz(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else os.getpid())))
