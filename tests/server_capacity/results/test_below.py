"""One value of a stored result forged, with a digest of the forgery: what lies below tells another one."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.data.json_file import write_with_digest
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.slo import Slo
from server_capacity.experiments.proof import folder as proofs
from server_capacity.experiments.proof.judging import judged
from server_capacity.experiments.proof.length import length_of
from server_capacity.experiments.proof.result import content
from server_capacity.results import capacity_folder as searches
from server_capacity.results import ranking_folder as rankings
from server_capacity.results.ranking_order import ranking
from server_capacity.results.ranking_row import Aim, row_of
from server_capacity.results.types.bounds import Endpoint
from server_capacity.results.types.search_waves import LimitRow, StretchRow
from tests.capacities import searched
from tests.proofs import LIMITS, PLANNED, QUESTION, SECONDS, ran
from tests.rankings import CURVE
from tests.waves import stored, wave

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Change = Callable[[dict[str, Any]], object]

RATE = 50


def forge(path: Path, change: Change) -> None:
    data = json.loads(path.read_text())
    change(data)
    write_with_digest(path, data)


@pytest.fixture
def search(tmp_path: Path) -> Path:
    """A search that a wave confirmed."""
    slos = (Slo.parse("p99<100ms"), Slo.parse("latency.p99.9<1s"))
    sent = wave(np.full((4, RATE), 0.02), slos=slos)
    run = stored(sent, tmp_path).path.name
    values = {"p99<100ms": sent.summary.measured("default", "p99"), "success>=0.95": 1.0, "latency.p99.9<1s": 0.02}
    limits = [{"expression": name, "value": value, "verdict": "holds"} for name, value in values.items()]
    confirmed = {
        "directory": run,
        "seconds": 4.0,
        "rate": float(RATE),
        "verdict": "holds",
        "exit_code": sent.verdict.exit_code,
    }
    reported = searched(
        headline="52/s",
        confirmation=[{**confirmed, "limits": limits}],
        rate=52.0,
        interval={"low": 50.0, "high": 54.0},
        limits=[{"expression": "p99<100ms", "at_low": values["p99<100ms"], "unit": "s"}],
        windows=None,
    )
    searches.save(tmp_path, reported)
    return tmp_path


def test_a_search_whose_wave_agrees_is_read(search: Path) -> None:
    assert [wave.rate for wave in searches.read(search).confirmation or []] == [RATE]


def test_a_search_of_an_address_with_a_password_is_that_of_its_waves(tmp_path: Path) -> None:
    """Where the value alone is hidden, the user stands beside it, which no plan has."""
    run = stored(wave(np.full((1, RATE), 0.02), endpoint_name="http://me:[hidden]@forest"), tmp_path).path.name
    reported = searched(waves={"explored": [run]}, confirmation=None, windows=None)
    for host, fits in (("forest", True), ("desert", False)):
        searches.save(tmp_path, replace(reported, endpoint=Endpoint(name=f"http://me:[hidden]@{host}")))
        with nullcontext() if fits else pytest.raises(BenchmarkError, match="but its search to"):
            searches.read(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda wave: wave.update(rate=99_999.0), "has the rate 50, not 99999"),
        (lambda wave: wave.update(exit_code=1), "has exit code 0, not 1"),
        (
            lambda wave: wave["limits"][1].update(value=0.97),
            r"the value 1, not 0\.97",
        ),
        (lambda wave: wave["limits"][2].update(value=0.5), r"for latency\.p99\.9<1s the value 0\.02"),
        (lambda wave: wave["limits"][0].update(value=0.001), r"p99<100ms was 0\.001 in the wave at the lower end"),
    ],
)
def test_a_wave_that_confirmed_is_held_against_its_own_files(search: Path, change: Change, said: str) -> None:
    forge(search / searches.FILE, lambda data: change(data["confirmation"][0]))
    with pytest.raises(BenchmarkError, match=said):
        searches.load(search)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda wave: wave.update(exit_code=None), "exit_code"),
        (lambda wave: wave.update(verdict=None), "verdict"),
        (lambda wave: wave.pop("exit_code"), "exit_code"),
        (lambda wave: wave["ledger"].update(ok=3), r"has 200 ok requests, and its ledger 3"),
        (lambda wave: wave["ledger"].update(failed=3), r"has 0 failed requests, and its ledger 3"),
        (lambda wave: wave["ledger"].update(ok=None), r"its ledger None"),
    ],
)
def test_the_summary_of_a_wave_that_confirmed_is_held_against_its_requests(
    search: Path, change: Change, said: str
) -> None:
    (summary,) = search.glob("*/summary.json")
    forge(summary, change)
    with pytest.raises(BenchmarkError, match=said):
        searches.load(search)


@pytest.mark.parametrize(
    ("expression", "key"), [("p99<100ms", "bound"), ("p99<100ms", "allowed"), ("success>=0.95", "allowed")]
)
def test_a_limit_has_the_bound_of_its_expression(search: Path, expression: str, key: str) -> None:
    rows = [
        encoded(LimitRow(expression="p99<100ms", bound=0.1, allowed=0.01)),
        encoded(LimitRow(expression="success>=0.95", allowed=0.05)),
    ]
    forge(search / searches.FILE, lambda data: data.update(limits=rows))
    searches.load(search)
    row = next(row for row in rows if row["expression"] == expression)
    row[key] = 0.3
    forge(search / searches.FILE, lambda data: data.update(limits=rows))
    with pytest.raises(BenchmarkError, match=f"{expression} is stored with 0.3"):
        searches.load(search)


@pytest.mark.parametrize("code", [1, 3])
def test_an_exit_code_of_a_search_follows_from_what_it_found(search: Path, code: int) -> None:
    forge(search / searches.FILE, lambda data: data.update(exit_code=code, ended="complete", confirmed="holds"))
    with pytest.raises(BenchmarkError, match=f"its exit code is {code}, but its answer means 0"):
        searches.load(search)


def test_a_stretch_has_about_as_many_requests_as_its_rate_gives(search: Path) -> None:
    made = StretchRow(number=0, rate=55.0, start_s=0.0, end_s=4.0, purpose="search", sent=190, answered=190, failed=0)
    stretch = encoded(made)
    forge(search / searches.FILE, lambda data: data.update(stretches=[stretch]))
    searches.load(search)
    forge(search / searches.FILE, lambda data: data["stretches"][0].update(rate=500.0))
    with pytest.raises(BenchmarkError, match="stretch 0 sent 190 requests, but its rate and time give 2,000"):
        searches.load(search)


@pytest.fixture
def proof(tmp_path: Path) -> Path:
    """A proof with its wave."""
    sent = ran(0.002)
    run = stored(sent, tmp_path).path.name
    length = length_of(PLANNED, LIMITS, float(SECONDS))
    data = content(QUESTION, PLANNED, length, judged(QUESTION, PLANNED, sent))
    proofs.save(tmp_path, replace(data, directory=run))
    assert proofs.load(tmp_path).found.outcome == "holds"
    return tmp_path


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data.update(target_rps=2000.0), "has the rate 200, not 2000"),
        (lambda data: data.update(sent=99), "has sent 12000, not 99"),
        (lambda data: data["length"].update(seconds=900.0), "has the length 60, not 900"),
        (lambda data: data.update(instances=99), "it is for 99 instances, but its endpoint had 3"),
        (lambda data: data["limits"][0].update(share_over=0.5), r"p99<100ms is met, but 0\.5 are over it"),
        (lambda data: data["limits"][0].update(share_over=0.009), "outside of its interval"),
        (lambda data: data["limits"][0].update(value=0.01), "for p99<100ms the value"),
        (lambda data: data.update(backlog=7), "its outcome is holds, but 7 requests were left"),
        (lambda data: data.update(exit_code=1), "its exit code is 1, but its plan or what it left behind means 0"),
        (lambda data: data.update(exit_code=3), "its exit code is 3, but its plan or what it left behind means 0"),
    ],
)
def test_a_proof_is_held_against_its_wave(proof: Path, change: Change, said: str) -> None:
    forge(proof / proofs.FILE, change)
    with pytest.raises(BenchmarkError, match=said):
        proofs.load(proof)


@pytest.fixture
def ranked(tmp_path: Path) -> Path:
    """A ranking of one search."""
    (tmp_path / "a_capacity").mkdir()
    endpoint = {"arguments": {"kind": "a"}}
    reported = searched(headline="174/s", curve=CURVE, endpoint=endpoint)
    searches.save(tmp_path / "a_capacity", reported)
    rows = [row_of({"kind": "a"}, "a_capacity", reported, None, Aim())]
    write_with_digest(tmp_path / rankings.FILE, encoded(ranking(rows, Aim())))  # which keeps no digests of the searches
    rankings.load(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda row: row.update(capacity=None), "row 1 has a rank but no search"),
        (lambda row: row["latency"].update(p99=0.001), "another latency"),
        (lambda row: row["endpoint"].update(name="other"), "another endpoint"),
        (lambda row: row.update(limit="p99<1ms"), "another limit"),
        (lambda row: row.update(confirmed="fails"), "another confirmed"),
        (lambda row: row.update(warnings=["no wave confirmed it"]), "the warnings of a_capacity"),
        (lambda row: row.update(variant={"kind": "b"}), "was searched with kind=a, not kind=b"),
    ],
)
def test_a_row_is_held_against_its_search(ranked: Path, change: Change, said: str) -> None:
    forge(ranked / rankings.FILE, lambda data: change(data["rows"][0]))
    with pytest.raises(BenchmarkError, match=said):
        rankings.load(ranked)


def test_a_row_names_a_search_that_the_ranking_is_built_on(ranked: Path) -> None:
    rankings.save(ranked, rankings.read(ranked))
    rankings.load(ranked)
    forge(ranked / rankings.FILE, lambda data: data["rows"][0].update(capacity="b_capacity"))
    with pytest.raises(BenchmarkError, match="'b_capacity' is not among the searches that it is built on"):
        rankings.load(ranked)


@pytest.mark.parametrize("stored", ["search", "ranked"])
def test_what_an_earlier_version_stored_without_a_digest_may_lack_keys(
    stored: str, request: pytest.FixtureRequest
) -> None:
    folder: Path = request.getfixturevalue(stored)
    file, load = {"search": (searches.FILE, searches.load), "ranked": (rankings.FILE, rankings.load)}[stored]
    whole = json.loads((folder / file).read_text())
    for key in ("digest", "headline", "built_on"):
        whole.pop(key, None)
    (folder / file).write_text(json.dumps(whole))
    load(folder)


def test_no_search_stands_in_two_rows(ranked: Path) -> None:
    (row,) = rankings.read(ranked).rows
    rows = [replace(row, variant={"other": name}) for name in "ab"]
    write_with_digest(ranked / rankings.FILE, encoded(ranking(rows, Aim())))
    with pytest.raises(BenchmarkError, match="a_capacity is the search of more than one row"):
        rankings.load(ranked)


def older(path: Path, **changes: object) -> None:
    """Make it a file of an earlier version, with other values."""
    data = json.loads(path.read_text())
    for key in ("digest", "built_on", "files"):
        data.pop(key, None)
    path.write_text(json.dumps({**data, **changes}))


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        ("summary.json", {"verdict": "X"}),
        ("summary.json", {"digest": "0"}),
        ("summary.json", {"ledger": "x"}),
        ("plan.json", {"load": None}),
    ],
)
def test_what_is_wrong_with_a_wave_is_said_of_its_own_file(search: Path, file: str, changes: dict[str, object]) -> None:
    older(search / searches.FILE)
    (summary,) = search.glob("*/summary.json")
    older(summary)
    older(summary.with_name(file), **changes)
    with pytest.raises(BenchmarkError, match=re.escape(f"{summary.with_name(file)}: cannot be read as a file of this")):
        searches.load(search)


def test_what_is_wrong_with_a_search_is_said_of_its_own_file(ranked: Path) -> None:
    older(ranked / rankings.FILE)
    path = ranked / "a_capacity" / searches.FILE
    older(path, rate=-5.0)
    with pytest.raises(BenchmarkError, match=re.escape(f"{path}: cannot be read as a file of this tool")):
        rankings.load(ranked)
