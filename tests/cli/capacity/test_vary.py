"""``benchmark capacity --vary``: flags, the question before money is spent, and what becomes of each variant."""

from __future__ import annotations

import errno
import json
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker import cli
from inference_benchmarker.cli.capacity import ranking, variant_process, vary_flags
from inference_benchmarker.errors import BenchmarkError, LostProcessError
from inference_benchmarker.words.redact import ADDRESSES
from server_capacity.experiments.ranking.collecting import LOST
from server_capacity.experiments.ranking.jobs import Job
from server_capacity.planning.costs.prices import Prices
from server_capacity.provisioning.cleanup_file import CleanupFile
from server_capacity.provisioning.undo import CommandLine
from server_capacity.results.capacity_folder import load, save
from server_capacity.results.ranking_row import Aim
from server_capacity.results.types.axes import Variant
from server_capacity.results.types.result_status import settled, warnings_of
from tests.bench import factories, files_holding
from tests.capacities import searched
from tests.fake_cloudwatch import alone
from tests.mentions import mentions

if TYPE_CHECKING:
    from pathlib import Path

    from server_capacity.provisioning.cleanup_file import State

MAKES = """
def endpoint_factory(servers: str, instance_type: str = "ml.m5.large", instances: int = 1, env=None):
    raise AssertionError("nobody makes it here")
    yield


def payload_factory(size: int = 1):
    return {"pre_computed": True, "input": [b"x"]}
"""
SUSPENDS = ("--suspend-scaling", "--endpoint-config", "c.json")
LINE = ("capacity", "--factories-file", "f.py", "--output-dir", "out", "--time", "60")


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(monkeypatch, tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.py").write_text(factories("return None").split("def payload_factory")[0] + MAKES)
    monkeypatch.setattr(ranking, "CHILD", "tests.variant_child")


class Ran:
    """A command that has ended, and the ranking that it left."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
        self.code = cli.main([*LINE, *arguments])
        self.out, self.err = capsys.readouterr()


def left(folder: Path) -> tuple[Path, dict[str, Any]]:
    (made,) = (folder / "out").glob("*_ranking")
    return made, json.loads((made / "ranking.json").read_text())


def test_variants_are_ranked_and_printed_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--vary", "servers=1,3,fails,dies", "--target-rps", "300", "--price", "ml.m5.large=0.1", "--yes")
    ran = Ran(capsys, *flags, "--parallel", "1")

    assert ran.code == 3, "a process was lost"
    folder, data = left(tmp_path)
    assert ran.out.splitlines()[0] == data["headline"]
    answer = "servers=3 is cheapest for 300/s: 2 instances, $0.20/h (given); next servers=1, 150% more."
    assert data["headline"].startswith(f"{answer} servers=fails has no rank: ")
    assert data["headline"].endswith("servers=dies has no rank: The process that ran the search was ended by signal 9.")
    rows = {row["variant"]["servers"]: row for row in data["rows"]}
    assert [row["rank"] for row in rows.values()] == [1, 2, None, None]
    assert rows["fails"]["headline"].endswith("raised ValueError: no.")
    assert rows["dies"]["headline"] == "The process that ran the search was ended by signal 9."
    assert (folder / rows["3"]["capacity"] / "capacity.json").is_file()
    assert {"ranking.html", "ranking_cost.png"} <= {path.name for path in folder.iterdir()}
    assert rows["3"]["endpoint"]["arguments"] == {"servers": "3"}
    assert data["spend"]["endpoints"] == 4
    assert "endpoint_factory would create 4 endpoints" in ran.err
    assert cli.main(["report", str(folder.relative_to(tmp_path))]) == 3
    assert capsys.readouterr().out == ran.out
    assert cli.main(["report", str(folder), "--json"]) == 3
    assert json.loads(capsys.readouterr().out) == data


def test_passwords_of_varied_addresses_are_hidden_and_their_ranking_can_be_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is stored: names of equal rates are in the order of what is hidden."""
    monkeypatch.setenv(ADDRESSES, "")
    addresses = "env.DATABASE=x://me:z3bra-word@a,x://me:ant3ater-word@b"
    ran = Ran(capsys, "--vary", "servers=1", "--vary", addresses, "--vary", "payload.size=1", "--yes")
    folder, data = left(tmp_path)
    assert [row["variant"]["env.DATABASE"] for row in data["rows"]] == ["x://me:[hidden]@a", "x://me:[hidden]@b"]
    assert files_holding(folder, ["z3bra-word", "ant3ater-word"]) == []
    assert "-word" not in ran.out + ran.err
    assert cli.main(["report", str(folder.relative_to(tmp_path))]) == ran.code == 0
    assert capsys.readouterr().out == ran.out


def test_a_process_that_another_program_interrupts_is_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran(capsys, "--vary", "servers=1,stopped", "--yes")

    _, data = left(tmp_path)
    assert (ran.code, data["exit_code"], data["interrupted"]) == (3, 3, False)
    assert data["headline"].endswith(f"servers=stopped has no rank: {LOST}")


def test_traffics_share_an_endpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran(capsys, "--vary", "servers=1", "--vary", "payload.size=1,3", "--yes", "--json", "--quiet")
    assert (ran.code, ran.err) == (0, "")
    data = json.loads(ran.out)
    assert data["payload_variants"]["equivalent"] is False
    assert len({row["capacity"].partition("-")[0] for row in data["rows"]}) == 1, "one process, one endpoint"
    assert [row["endpoint"]["payload_arguments"] for row in data["rows"]] == [{"size": 3}, {"size": 1}]
    assert data["spend"]["endpoints"] == 1


def test_traffics_of_an_endpoint_that_is_there_make_none(capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran(capsys, "--vary", "payload.size=1,1000", "--endpoint-name", "mine")
    assert ran.code == 0
    assert "is to make" not in ran.err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            ["--vary", "servers=1"],
            "Give --yes, with --price TYPE=USD and --max-cost USD to limit the cost.",
        ),
        (["--vary", "servers=1", "--price", "ml.m5.large=1"], "Give --yes, with --max-cost USD to limit"),
        (["--vary", "servers=1", "--vary", "instances=-100", "--max-cost", "1", "--yes"], "from 1 to 10,000, not -100"),
        (["--vary", "servers=1", "--vary", "instances=0,10001", "--yes"], "from 1 to 10,000, not 10001"),
        (["--vary", "servers=1", "--yes", *SUSPENDS], "--suspend-scaling is for an existing endpoint"),
        (["--vary", "servers=1", "--yes", "--max-cost", "1"], "--max-cost 1: there is no price of ml.m5.large."),
        (
            ["--vary", "servers=1,2", "--yes", "--max-cost", "0.1", "--price", "ml.m5.large=1"],
            "--max-cost 0.1: the search may cost 0.54 USD.",
        ),
        (["--vary", "servrs=1", "--yes"], "--vary servrs: endpoint_factory takes no argument 'servrs'"),
        (["--vary", "instances=x", "--yes"], "endpoint_factory's instances: expected int"),
        (["--yes"], "endpoint_factory needs servers: give --vary servers=VALUE."),
        (["--vary", "payload.sice=1", "--endpoint-name", "e"], "payload_factory takes no argument 'sice'"),
        (["--vary", "serves=1", "--yes"], "env. Did you mean servers?"),
        (["--vary", "servers=1", "--vary", "env=1,2", "--yes"], "env is a dictionary: give --vary env.NAME=V,V."),
        (["--vary", "servers=1", "--endpoint-name", "e"], "--endpoint-name names an existing one"),
        (["--vary", "a"], "--vary 'a': expected NAME=VALUE,VALUE"),
        (["--target-rps", "5"], "--target-rps is for --vary"),
        (["--vary", "servers=1", "--parallel", "1000"], "--parallel must be from 1 to the"),
        (["--vary", "servers=1", "--parallel", "2", "--port", "5557"], "--port is for one search at a time"),
        (["--vary", "servers=1", "--parallel", "2", "--workers", "64"], "64 for each of 2 searches at a time are more"),
        (["--vary", "servers=1", "--target-rps", "0"], "--target-rps must be above 0"),
        (["--vary", "servers=1", "--in", "users"], "--vary ranks by requests/s: leave --in users out."),
        (["--vary", "servers=1", "--utilisation", "120%"], "--utilisation must be above 0% and at most 100%"),
        (["--price", "x"], "--price must be TYPE=USD"),
        (["--vary", "servers=1", "--recommender", "job", "--yes"], "--recommender job: no AWS region is set."),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], said: str
) -> None:
    ran = Ran(capsys, *flags)
    assert ran.code == 2
    assert said in ran.err
    assert not (tmp_path / "out").exists()


def test_a_file_without_invoke_factory_is_refused_before_the_question(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "f.py").write_text(MAKES)
    ran = Ran(capsys, "--vary", "servers=1", "--yes")
    assert (ran.code, "f.py: has no invoke_factory." in ran.err, "is to make" in ran.err) == (2, True, False)


def test_a_wave_varies_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--vary", "a=1,2"]) == 2
    assert capsys.readouterr().err == "benchmark: --vary belongs to `benchmark capacity`.\n"


def test_a_demo_costs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    asked = vary_flags.VariantsRequest((), [], Aim(), 1, 1, Prices({}), None, sure=True, suspends=False, demo=True)
    said: list[str] = []
    found = ranking.before(
        60, [Job((Variant(),), {}, {"instance_type": "ml.m5.large"}, (None,))] * 2, asked, said.append
    )
    assert said == ["The embedded endpoint creates 2 endpoints (about 1 min of load each); this costs nothing."]
    assert found == ([], None)


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("\n", 2), ("", 2)])
def test_whoever_sits_at_a_terminal_is_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    import io

    monkeypatch.setattr(ranking, "has_terminal", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    ran = Ran(capsys, "--vary", "servers=1", "--price", "ml.m5.large=0.1")
    assert ran.code == code
    assert mentions(ran.err, "1 endpoint", "16 min", "0.27 instance", "$0.027")
    assert ("Nothing was created." in ran.err) == (code == 2)


def test_what_costs_nothing_that_anybody_knows_is_agreed_to_by_a_flag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "f.py").write_text((tmp_path / "f.py").read_text().replace(', instance_type: str = "ml.m5.large"', ""))
    ran = Ran(capsys, "--vary", "servers=1")
    assert ran.code == 2
    assert "There is no terminal to ask on. Give --yes if it costs nothing, for example because it starts" in ran.err
    ran = Ran(capsys, "--vary", "servers=1", "--yes", "--max-cost", "1")
    assert ran.code == 2
    assert "no price of an endpoint without instance_type. Leave --max-cost out." in ran.err


def test_a_ranking_that_cannot_be_stored_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("server_capacity.results.stored.write_with_digest", full)
    ran = Ran(capsys, "--vary", "servers=1,3", "--yes")
    assert ran.code == 3
    assert ran.out.startswith("servers=3 has the highest capacity")
    assert "No space left on device" in ran.err


def test_an_interrupt_keeps_what_there_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    meanwhile: list[dict[str, Any]] = []

    def press() -> None:
        while not list(tmp_path.glob("out/*/*/waits")):
            time.sleep(0.02)
        meanwhile.append(left(tmp_path)[1])
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    ran = Ran(capsys, "--vary", "servers=1,waits,2", "--yes")

    _, data = left(tmp_path)
    assert (ran.code, data["exit_code"], data["interrupted"]) == (130, 130, True)
    assert [(each["exit_code"], each["interrupted"]) for each in meanwhile] == [(130, True)], "were it killed here"
    outcomes = {row["variant"]["servers"]: row["outcome"] for row in data["rows"]}
    assert outcomes == {"1": "found", "waits": "interrupted", "2": "interrupted"}
    assert data["headline"].startswith("Interrupted after 1 of 3 variants; so far servers=1")
    assert ran.out.startswith(data["headline"])


SERVED = """
import re
import subprocess
import sys
from pathlib import Path

from geventhttpclient import HTTPClient
from inference_benchmarker import created


def endpoint_factory(servers: int):
    if servers < 0:
        created({"command": ["/nowhere/to/be/found"]})
        yield "http://127.0.0.1:9"
        return
    if servers == 0:
        with open("removed", "a") as file:
            yield "http://127.0.0.1:9"
            file.write("removed")
        return
    flags = ["--port", "0", "--servers", str(servers), "--service-time", "0.05"]
    command = [sys.executable, "-m", "inference_benchmarker.cli", "endpoint", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield re.search(r"http://\\S+", process.stdout.readline())[0]
        process.terminate()


def invoke_factory(endpoint_name):
    client = HTTPClient.from_url(endpoint_name, concurrency=1000)

    def invoke(payload):
        with_body = client.post("/invocations", body=payload)
        assert with_body.read() and with_body.status_code == 200

    return invoke


def payload_factory():
    return {"pre_computed": True, "input": [b"%d" % number for number in range(100)]}
"""


@pytest.mark.process
def test_an_endpoint_that_answers_nothing_is_removed_unmeasured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.py").write_text(SERVED)

    ran = Ran(capsys, "--vary", "servers=0,-1", "--parallel", "1", "--yes")

    _, data = left(tmp_path)
    assert (ran.code, data["exit_code"]) == (3, 3), "of the second something is left"
    removed, kept = data["rows"]
    assert (removed["exit_code"], kept["exit_code"]) == (1, 3)
    assert removed["headline"].startswith("http://127.0.0.1:9: the first request to it failed: ")
    assert kept["headline"].startswith("http://127.0.0.1:9: the first request to it failed: ")
    assert "was not removed" in kept["headline"]
    assert "was not removed" in data["headline"]
    assert (tmp_path / "removed").read_text() == "removed"


@pytest.mark.parametrize(
    ("state", "reason", "code"),
    [("held", None, 3), ("undone", None, 0), ("undone", "its removal raised", 0), ("unknown", "its removal raised", 3)],
)
def test_a_search_whose_endpoint_could_not_be_removed_says_so_in_a_ranking(
    tmp_path: Path, state: State, reason: str | None, code: int
) -> None:
    """Two searches of one endpoint, and one that failed; the list of what was made lies in the first folder."""
    folders = [tmp_path / "x_1_capacity", tmp_path / "x_2_capacity"]
    fields: dict[int, variant_process.SearchOrReason] = {2: variant_process.Unsearched("it failed.")}
    for place, folder in enumerate(folders):
        folder.mkdir()
        fields[place] = variant_process.Searched(folder, save(folder, settled(searched())))
    with CleanupFile.taken(folders[0]) as cleanup:
        number = cleanup.hold("the endpoint", CommandLine(("false",)), None)
        if state != "held":
            cleanup.conclude(number, state, reason)
    again: list[dict[str, Any]] = []

    variant_process.add_clean_up(folders[0], fields, again.append)

    assert [load(folder).found.exit_code for folder in folders] == [code, code]
    assert [each["place"] for each in again if each.get("code") == 3] == ([2] if code else [])
    assert [load(folder).found.warnings for folder in folders] == [reason and [reason]] * 2
    assert all((f"of its search, {reason}" in warnings_of(load(folder).found)) == bool(reason) for folder in folders)
    assert [each["place"] for each in again if "folder" in each] == [0, 0, 1, 1], "before and after it changes"


def test_a_search_whose_process_was_lost_is_invalid() -> None:
    lost = variant_process.unsearched(LostProcessError("the primary process ended before the wave began", "Killed"))
    assert lost == ("the primary process ended before the wave began", 3)
    assert variant_process.unsearched(BenchmarkError("x.py: it raises.", "Mend it.")) == (
        "x.py: it raises. Mend it.",
        1,
    )


def test_a_search_does_not_change_once_nobody_stores_its_ranking_any_more(tmp_path: Path) -> None:
    """Its parent was killed, whose ranking has the digest of the search as it was."""

    def tell(_: object) -> None:
        raise BrokenPipeError

    folder = tmp_path / "x_capacity"
    folder.mkdir()
    found = save(folder, settled(searched()))
    with CleanupFile.taken(folder) as cleanup:
        cleanup.hold("the endpoint", CommandLine(("false",)), None)
    with pytest.raises(BrokenPipeError):
        variant_process.add_clean_up(folder, {0: variant_process.Searched(folder, found)}, tell)
    assert load(folder).found.digest == found.digest


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.process
def test_more_servers_are_found_to_hold_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One server of 50 ms is full at 20/s, four are at 80/s."""
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.py").write_text(SERVED)

    ran = Ran(capsys, "--vary", "servers=1,4", "--yes", "--slo", "p99<500ms", "--target-rps", "100", "--time", "20")

    folder, data = left(tmp_path)
    assert ran.code == 0, ran.err
    first, second = data["rows"]
    assert (first["variant"], second["variant"]) == ({"servers": "4"}, {"servers": "1"})
    for row, servers in ((first, 4), (second, 1)):
        assert 8 * servers < row["rate"] < 22 * servers
        fields = json.loads((folder / row["capacity"] / "capacity.json").read_text())
        assert fields["endpoint"]["arguments"] == {"servers": servers}
        assert fields["endpoint"]["seconds_to_create"] > 0
        assert (folder / row["capacity"] / "capacity.html").is_file()
        entries = json.loads((folder / row["capacity"] / "cleanup.json").read_text())["entries"]
        assert {entry["state"] for entry in entries} <= {"undone", "gone"}
