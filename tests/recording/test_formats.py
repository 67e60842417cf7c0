"""Every format of a recording: what it is taken for, when its rows arrive, what a row is; and what is refused."""

from __future__ import annotations

import gzip
import json
import shutil
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.recording.formats import opened_source
from inference_benchmarker.recording.rows import value_of
from inference_benchmarker.recording.source import BLOCK_BYTES
from inference_benchmarker.words.units import NS
from tests.recordings import dues_of, rows_of, taken

if TYPE_CHECKING:
    from pathlib import Path

AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:03.9799600,4808,10
2023-11-16 18:17:04.0319600,110,27
2023-11-16 18:17:04.0319600,110,0
"""
MOONCAKE = """{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]}
{"timestamp": 30535, "input_length": 6472, "output_length": 26, "hash_ids": [46, 49]}
"""
NGINX = """10.0.0.1 - ann [10/Oct/2026:13:55:36 +0200] "GET /v1/a?b=c HTTP/1.1" 200 2326 "-" "curl/8" 0.250
10.0.0.2 - - [10/Oct/2026:13:55:46 +0200] "POST /v1 HTTP/2.0" 500 - "-" "say \\"hi\\"" 2.500
"""
COMMON = """10.0.0.1 - - [31/Dec/2026:23:59:59 +0000] "GET / HTTP/1.1" 200 5
10.0.0.1 - - [01/Jan/2027:00:00:01 +0000] "GET / HTTP/1.1" 200 5
"""
ALB_TAIL = (
    '0.086 0.048 0.037 200 200 0 57 "GET https://a.example:443/ HTTP/1.1" "curl/7" ECDHE TLSv1.2 arn:t "Root=1" '
    '"a.example" "arn:c" 1'
)
ALB = (
    f"https 2026-07-02T22:23:00.186641Z app/lb/5 192.0.2.1:2817 10.0.0.1:80 {ALB_TAIL} "
    '2026-07-02T22:22:48.364000Z "forward" "-" "-" "10.0.0.1:80" "200" "-" "-" TID_1 new-field\n'
    f"http 2026-07-02T22:23:00.500000Z app/lb/5 192.0.2.1:2818 - {ALB_TAIL}\n"
)
CLB = """2026-05-13T23:39:43.945958Z my-lb 192.0.2.1:2817 10.0.0.1:80 0.000073 0.001048 0.000057 200 200 0 29 "GET http://a:80/ HTTP/1.1" "curl" - -
2026-05-13T23:39:44.945958Z my-lb 192.0.2.1:2817 10.0.0.1:80 0.000073 0.001048 0.000057 200 200 0 29 "GET http://a:80/ HTTP/1.1" "curl" - -
"""  # noqa: E501 - a line of the log


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("content", "format_name", "column", "unit", "zone", "dues_s", "row"),
    [
        (
            AZURE,
            "Azure's LLM trace",
            "TIMESTAMP",
            "ISO 8601",
            "UTC",
            [0, 0.052, 0.052],
            {"TIMESTAMP": "2023-11-16 18:17:03.9799600", "ContextTokens": 4808, "GeneratedTokens": 10},
        ),
        (
            MOONCAKE,
            "Mooncake's trace",
            "timestamp",
            "milliseconds since its beginning",
            "",
            [0, 3.053],
            {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]},
        ),
        (
            "id;ts\n007;1700000000123\n8;1700000000124\n",
            "CSV",
            "ts",
            "milliseconds since 1970",
            "UTC",
            [0, 0.001],
            {"id": "007", "ts": 1700000000123},
        ),
        ("ts\n1700000000123456\n1700000000123457\n", "CSV", "ts", "microseconds since 1970", "UTC", [0, 1e-6], None),
        (
            "ts\n1700000000123456789\n1700000000123456799\n",
            "CSV",
            "ts",
            "nanoseconds since 1970",
            "UTC",
            [0, 1e-8],
            None,
        ),
        ("epoch\n1700000000.123\n1700000001.623\n", "CSV", "epoch", "seconds since 1970", "UTC", [0, 1.5], None),
        (
            "x,arrival_time\na,0.125\nb,0.250\n",
            "CSV",
            "arrival_time",
            "seconds since its beginning",
            "",
            [0, 0.125],
            None,
        ),
        ("arrival_ms\n100\n350\n", "CSV", "arrival_ms", "milliseconds since its beginning", "", [0, 0.25], None),
        (
            '{"n": 1, "time": "2026-01-01T00:00:00.100-05:00"}\n\n{"n": 2, "time": "2026-01-01T00:00:00.300-05:00"}\n',
            "JSON lines",
            "time",
            "ISO 8601",
            "-05:00",
            [0, 0.2],
            {"n": 1, "time": "2026-01-01T00:00:00.100-05:00"},
        ),
        (ALB, "AWS ALB access log", "time", "ISO 8601", "UTC", [0, 11.965], None),
        (CLB, "AWS CLB access log", "timestamp", "ISO 8601", "UTC", [0, 1.0], None),
    ],
)
def test_a_recording_is_found_and_read(  # noqa: PLR0917 - a row of the table
    tmp_path: Path, content: str, format_name: str, column: str, unit: str, zone: str, dues_s: list[float], row: Any
) -> None:
    for name, data in (("plain", content.encode()), ("packed.gz", gzip.compress(content.encode()))):
        found = taken(written(tmp_path / name, data))
        reported = found.recording
        assert reported is not None
        assert (reported.format, reported.column, reported.unit, reported.zone) == (format_name, column, unit, zone)
        assert (reported.rows, reported.spread_ns) == (len(dues_s), 0)
        assert dues_of(found) == [round(due * NS) for due in dues_s]
        assert row is None or rows_of(found)[0] == row


def test_arrow_reads_a_parquet_file_by_itself(tmp_path: Path, parquet_sources: list[object]) -> None:
    pq.write_table(pa.table({"time": [1.0, 2.0]}), tmp_path / "a.parquet")
    taken(tmp_path / "a.parquet")
    assert {type(source) for source in parquet_sources} == {pa.OSFile}


@pytest.mark.parametrize(
    ("kind", "values", "unit", "zone", "spread_ns"),
    [
        (
            pa.timestamp("us", "Europe/Berlin"),
            [datetime(2026, 1, 1, 0, 0, 0, 1000, tzinfo=UTC)],
            "microseconds",
            "Europe/Berlin",
            0,
        ),
        (pa.timestamp("s"), [datetime(2026, 1, 1, 0, 0, 7)], "milliseconds", "UTC", NS),
        (pa.int64(), [1_700_000_000_000], "milliseconds", "UTC", 0),
        (pa.float64(), [0.125], "seconds", "", 0),
        (pa.string(), ["2026-01-01T00:00:00.000Z"], "ISO 8601", "UTC", 0),
    ],
)
def test_parquet_is_read_with_its_types(  # noqa: PLR0917 - a row of the table
    tmp_path: Path, kind: pa.DataType, values: list[Any], unit: str, zone: str, spread_ns: int
) -> None:
    table = pa.table({"time": pa.array(values * 3, kind), "size": [1, 2, 3]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    found = taken(tmp_path / "a.parquet")
    reported = found.recording
    assert reported is not None
    assert (reported.format, reported.zone, reported.spread_ns) == ("parquet", zone, spread_ns)
    assert unit in reported.unit
    assert sorted(row["size"] for row in rows_of(found)) == [1, 2, 3]


def test_the_start_of_a_logged_request_is_its_stamp_less_its_duration(tmp_path: Path) -> None:
    found = taken(written(tmp_path / "access.log", NGINX))
    first, second = dues_of(found)
    assert found.recording is not None
    assert found.recording.spread_ns == NS
    assert "$request_time" in found.recording.found
    gap = (second - first) / NS - (10 - 2.5 + 0.25)
    assert -1 < gap < 1, "each is somewhere in its second"
    row = rows_of(found)[0]
    assert (row["remote_user"], row["method"], row["path"], row["status"]) == ("ann", "GET", "/v1/a?b=c", 200)
    assert (row["duration"], row["http_user_agent"]) == (0.25, "curl/8")
    stamped = taken(tmp_path / "access.log", column="time_local")
    assert -1 < (dues_of(stamped)[1] - dues_of(stamped)[0]) / NS - 10 < 1


@pytest.mark.parametrize("logged", [("250000", "1500000"), ("0", "2"), ("-", "-")])
def test_apaches_stamps_are_the_begins_of_requests(tmp_path: Path, logged: tuple[str, str]) -> None:
    lines = [line.rpartition(" ")[0] for line in NGINX.splitlines()]
    text = "".join(f"{line} {each}\n" for line, each in zip(lines, logged, strict=True))
    first, second = dues_of(taken(written(tmp_path / "access.log", text)))
    assert -1 < (second - first) / NS - 10 < 1


def test_whole_seconds_are_spread_by_the_seed(tmp_path: Path) -> None:
    file = written(tmp_path / "access.log", COMMON * 50)
    with pytest.raises(BenchmarkError, match="is not a line"):
        taken(written(tmp_path / "other.log", f"{COMMON}nonsense\n"))
    file = written(tmp_path / "sorted.log", "".join(f"{line}\n" * 50 for line in COMMON.splitlines()))
    once, again, other = (dues_of(taken(file, seed=seed)) for seed in (7, 7, 8))
    assert once == again != other
    assert once == sorted(once)
    assert len(set(once)) == 100
    assert sum(due < NS for due in once) == 50


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("-2", -2), ("1.5", 1.5), ("1e3", 1000.0), ("007", "007"), ("1_0", "1_0"), ("nan", "nan"), ("", None)],
)
def test_a_text_that_is_a_number_becomes_one(text: str, value: object) -> None:
    assert value_of(text) == value


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", r"x: is empty\."),
        ("timestamp,n\n", r"x: has no row\."),
        ("a,b\n1,2\n", r"no column has a usual name for times .*; it has a, b\. Name it with --replay-column\."),
        ("time,b\nyesterday,2\n", r"x, line 2, time: 'yesterday' is not a time\. Expected seconds or milliseconds"),
        ("time,b\n1,2\n\n2,x,y\n", r"x, line 4: has 3 values, and the header names 2\."),
        ("time\n0.125\n2\n\nlater\n", r"x, line 5, time: 'later' is not a time\. Expected seconds since its beginning"),
        ("time\n100.125\n20\n", r"x, line 3: 20 s comes 80 s after a later time: the clock jumped back"),
        ('{"time": 1}\n[2]\n', r"x, line 2: expected a JSON object, found '\[2\]'"),
        ('{"time": ' + 100_000 * "[", r"x, line 1: is nested too deeply\."),
        ('{"time": 1}\n{"tim": 2}\n', r"x, line 2, time: None is not a time"),
        ('[{"time": 1}]\n', r"x: begins with a JSON array\. Write one object per line"),
        ("timestamp,n\n1,2\n".encode("utf-16"), r"x: is UTF-16, and recordings are read as UTF-8\. `iconv"),
        (gzip.compress("timestamp,n\n1,2\n".encode("utf-16")), r"x: is UTF-16"),
        ("time\n1\n" + 1_000_001 * "\n" + "2\n", r"x: .*line 1,000,003 is the last of more than 1,000,000 blank ones"),
        (f"time{10_000 * ','}\n", r"x: has 10,001 columns\. Give at most 10,000"),
        (b"PAR1nonsense", r"x: cannot be read"),
        (gzip.compress(AZURE.encode())[:-9], r"x: cannot be read"),
    ],
)
def test_what_is_no_recording_is_reported_by_its_line(tmp_path: Path, content: str | bytes, expected: str) -> None:
    with pytest.raises(BenchmarkError, match=expected):
        taken(written(tmp_path / "x", content))
    assert not any((tmp_path / "read").iterdir()), "nothing is left behind"


def test_a_field_is_as_long_as_a_line_may_be(tmp_path: Path) -> None:
    long = "x" * 200_000
    assert dues_of(taken(written(tmp_path / "x", f"time,text\n0.000000000,{long}\n1.000000000,{long}\n"))) == [0, NS]


def test_another_column_and_another_unit_can_be_named(tmp_path: Path) -> None:
    file = written(tmp_path / "x", "time,start\n5,1000\n6,3000\n")
    assert dues_of(taken(file, column="start:ms")) == [0, 2 * NS]
    with pytest.raises(BenchmarkError, match=r"--replay-column begin: .* has no such column\. It has time, start\."):
        taken(file, column="begin")


def test_a_request_that_took_very_long_is_refused_by_its_line(tmp_path: Path) -> None:
    begin = datetime(2026, 10, 10, tzinfo=UTC)
    lines = [
        f'10.0.0.1 - - [{begin + timedelta(seconds=30 * step):%d/%b/%Y:%H:%M:%S} +0000] "GET / HTTP/1.1" 200 5 0.1\n'
        for step in range(2100)
    ]
    lines += [lines[-1].replace(" 0.1\n", " 3000.0\n")]
    with pytest.raises(BenchmarkError, match=r"line 2,101: its request began more than 600 s before"):
        taken(written(tmp_path / "access.log", "".join(lines)))


@pytest.mark.parametrize("times", [[-(2**62), 2**62], [2**62, 0], [0, 2**63 - 1]])
def test_an_instant_that_is_too_far_from_others_is_refused(tmp_path: Path, times: list[int]) -> None:
    pq.write_table(pa.table({"time": pa.array(times, pa.timestamp("ns"))}), tmp_path / "a.parquet")
    with pytest.raises(BenchmarkError, match="is not a time"):
        taken(tmp_path / "a.parquet")


def test_a_parquet_file_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    prompts = pa.array(["a" * (1 << 27), "b"])
    pq.write_table(pa.table({"time": [1.0, 2.0], "prompt": prompts}), tmp_path / "a.parquet", compression="zstd")
    with pytest.raises(BenchmarkError, match=r"the column prompt has 128 MiB in 2 rows"):
        taken(tmp_path / "a.parquet")


def test_a_list_of_a_parquet_file_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    table = pa.table({"time": [1.0, 2.0], "x": pa.array([np.zeros(1 << 24, np.int8), []], pa.list_(pa.int8()))})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(BenchmarkError, match=r"the column x\.list\.element has 128 MiB in 2 rows"):
        taken(tmp_path / "a.parquet")


def large_rows(path: Path, kind: str) -> list[str]:
    """A recording with a few large rows between small ones; what its rows say."""
    texts = [chr(97 + number) * (2_000_000 if number % 3 == 0 else 10) for number in range(20)]
    table = pa.table({"timestamp": [1.7e9 + number for number in range(20)], "x": texts})
    match kind:
        case "parquet":
            pq.write_table(table, path, row_group_size=1)
        case "dictionary":
            pq.write_table(table.set_column(1, "x", table["x"].dictionary_encode()), path, row_group_size=7)
        case _:
            path.write_text("".join(f"{json.dumps(row)}\n" for row in table.to_pylist()))
    return texts


@pytest.mark.parametrize("kind", ["parquet", "dictionary", "json"])
def test_blocks_end_where_they_are_large(tmp_path: Path, kind: str) -> None:
    texts = large_rows(tmp_path / "x", kind)
    with opened_source(tmp_path / "x") as source:
        blocks = [block.rows for block in source.blocks]
    assert max(block.nbytes for block in blocks) < BLOCK_BYTES + 2_100_000  # a row of text goes beyond it
    assert sum(map(len, blocks)) == len(texts)
    assert len(blocks) < len(texts)
    assert [row["x"] for row in rows_of(taken(tmp_path / "x"))] == texts


def test_a_copy_of_a_recording_leaves_others_their_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=20_000_000))
    large_rows(tmp_path / "x", "parquet")
    with pytest.raises(
        BenchmarkError, match=r"read: the rows of the recording would take more than half of the free space there"
    ):
        taken(tmp_path / "x")
    assert rows_of(taken(tmp_path / "x", number=2))
