"""aiperf beside the wave: the real one against the embedded endpoint, and one of ours that misbehaves on demand."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker import cli
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.packaged import demo_tokenizer
from server_capacity.aiperf import installation as aiperf
from server_capacity.aiperf.arguments import ALIASES, FAMILIAR, problems_of_names
from server_capacity.aiperf.inputs import made_requests
from server_capacity.aiperf.installation import BINARY, Installation
from tests.bench import files_holding
from tests.fake_aiperf import CHAT, NOBODY, STAND_IN, aiperf_here

if TYPE_CHECKING:
    from tests.bench import Bench, Running

KEY = "open-sesame-4711"


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which our own program is aiperf."""
    folder = tmp_path_factory.mktemp("environment")
    (folder / "aiperf").write_text(STAND_IN)
    (folder / "python3").symlink_to(sys.executable)
    return {BINARY: str(folder / "aiperf")}


def begin(bench: Bench, stand_in: dict[str, str], behaviour: str = "", *arguments: str, **environment: str) -> Running:
    given = {"behaviour": behaviour, "tokenizer": str(Path(__file__).parent)}  # a folder that is there
    load = ("--client-rps", "20", "--num-requests", "4", "--aiperf-only", "--url", NOBODY)
    return bench.start(
        *load,
        "--aiperf-args",
        json.dumps(given),
        *arguments,
        factories=CHAT,
        environment={**stand_in, "HF_HUB_OFFLINE": "1", **environment},
    )


@pytest.mark.process
@pytest.mark.parametrize("by", ["environment", "flag", "aiperf's flag"])
def test_the_key_arrives_and_is_seen_nowhere(by: str, bench: Bench, stand_in: dict[str, str]) -> None:
    if by == "flag":
        done = begin(bench, stand_in, "", "--api-key", KEY).finish()
    elif by == "environment":
        done = begin(bench, stand_in, BENCHMARK_API_KEY=KEY).finish()
    else:
        done = begin(bench, stand_in, "", "--aiperf-args", json.dumps({"api-key": KEY})).finish()
    assert done.code == 0, done.err
    assert (done.folder_of_aiperf / "key_length.csv").read_text() == str(len(KEY))
    assert "aiperf" in (done.folder_of_aiperf / "cmdline.txt").read_text()
    assert files_holding(done.folder_of_aiperf.parent, [KEY]) == []
    assert KEY not in done.out + done.err
    assert "Total requests fired: 4, all answered" in done.out


@pytest.mark.process
@pytest.mark.parametrize(("by", "password"), [("flag", KEY), ("aiperf's flag", KEY), ("flag", "1234")])
def test_the_password_in_its_address_is_seen_nowhere(
    by: str, password: str, bench: Bench, stand_in: dict[str, str]
) -> None:
    """The tool stores the address that it sent to; the wave, whose factories file has its own, does not know it."""
    address = NOBODY.replace("://", f"://me:{password}@")
    arguments = ("--url", address) if by == "flag" else ("--aiperf-args", json.dumps({"url": address}))
    done = begin(bench, stand_in, "", *arguments).finish()
    assert done.code == 0, done.err
    export = json.loads((done.folder_of_aiperf / "profile_export_aiperf.json").read_text())
    assert (export["urls"], export["number"]) == (["[hidden]127.0.0.1:9"], 1234)
    assert files_holding(done.folder_of_aiperf.parent, [f"me:{password}", KEY]) == []
    assert password not in done.out + done.err


@pytest.mark.process
def test_a_tokenizer_in_a_folder_needs_no_hub_and_the_key_is_not_passed_on(
    bench: Bench, stand_in: dict[str, str]
) -> None:
    done = begin(bench, stand_in, BENCHMARK_API_KEY=KEY).finish()
    assert json.loads((done.folder_of_aiperf / "environment.csv").read_text()) == []


def test_the_tokenizers_folder_counts_whatever_the_model_is_called(tmp_path: Path) -> None:
    offline = {"HF_HUB_OFFLINE": "1"}
    named = ["--tokenizer", str(tmp_path), "--model", "m"]
    assert "HF_HUB_OFFLINE" not in aiperf.environment_of(offline, named, "")
    assert "HF_HUB_OFFLINE" not in aiperf.environment_of(offline, ["--model", str(tmp_path)], "")
    assert "HF_HUB_OFFLINE" in aiperf.environment_of(offline, ["--tokenizer", "m", "--model", str(tmp_path)], "")


@pytest.mark.process
def test_a_failure_is_reported_in_its_last_words(bench: Bench, stand_in: dict[str, str]) -> None:
    done = begin(bench, stand_in, "fails", BENCHMARK_API_KEY=KEY).finish()
    assert done.code == 3
    assert "aiperf failed" in done.err
    assert done.err.rstrip().endswith("the tokenizer of [hidden] is not there")
    assert "Traceback" not in done.err


@pytest.mark.process
def test_ctrl_c_ends_it_and_its_children_and_tells_what_there_is(bench: Bench, stand_in: dict[str, str]) -> None:
    running = begin(bench, stand_in, "hangs")
    running.wait_for(lambda: list(running.folder.glob("runs/*/aiperf/profile_export.jsonl")), "records")
    time.sleep(0.3)
    running.signal(signal.SIGINT)
    done = running.finish()
    assert done.code == 130
    assert "Total requests:   4" in done.out
    assert "Interrupted" in done.out


@pytest.mark.process
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"behavior": "fails"}, "aiperf has no flag behavior. Did you mean behaviour?"),
        ({"behaviour": "", "zzz_zzz": 1}, "aiperf has no flag zzz-zzz. `aiperf profile --help` lists those it has.\n"),
    ],
)
def test_a_flag_that_aiperf_does_not_have_is_reported_before_any_load(
    given: dict[str, Any], expected: str, bench: Bench, stand_in: dict[str, str]
) -> None:
    arguments = ("--client-rps", "20", "--num-requests", "4", "--aiperf", "--url", NOBODY)
    done = bench.run(*arguments, "--aiperf-args", json.dumps(given), factories=CHAT, environment=stand_in)
    assert done.code == 2
    assert expected in done.err
    assert not done.out


def test_an_aiperf_whose_help_says_nothing_is_believed_to_have_every_flag(tmp_path: Path) -> None:
    for source in ("raise SystemExit(1)", "print('Options: many')"):
        (tmp_path / "aiperf").write_text(source)
        assert aiperf.known_flags(Installation(tmp_path / "aiperf", Path(sys.executable)), {}) == frozenset()
    assert list(problems_of_names(["any"], frozenset())) == []


@pytest.mark.process
def test_the_real_one_has_the_flags_that_it_is_not_asked_about() -> None:
    known = aiperf.known_flags(Installation.find({BINARY: aiperf_here()}), os.environ)
    assert known >= {*FAMILIAR, *ALIASES.values()} | {name for name in ALIASES if len(name) > 2}
    assert "k" not in known


@pytest.mark.process
def test_the_demo_with_aiperf_is_a_chat(bench: Bench, stand_in: dict[str, str]) -> None:
    arguments = ("--demo", "--num-requests", "4", "--aiperf-only", "--json", "--output-dir", "runs")
    done = bench.run(*arguments, factories=None, environment={**stand_in, "HF_HUB_OFFLINE": "1"})
    assert done.code == 0, done.err
    assert json.loads((done.folder_of_aiperf / "environment.csv").read_text()) == [], "its tokenizer is no folder"
    body = made_requests(done.folder_of_aiperf / "inputs.json").body
    assert {"messages", "stream", "model"} <= set(body)


@pytest.mark.process
def test_it_does_not_outlive_a_command_that_was_killed(bench: Bench, stand_in: dict[str, str]) -> None:
    running = begin(bench, stand_in, "hangs")
    running.wait_for(lambda: list(running.folder.glob("runs/*/aiperf/profile_export.jsonl")), "records")
    running.process.kill()
    running.finish()


@pytest.mark.process
def test_what_it_had_done_when_the_command_was_killed_is_reported(bench: Bench, stand_in: dict[str, str]) -> None:
    running = begin(bench, stand_in, "hangs")
    (records,) = running.wait_for(lambda: list(running.folder.glob("runs/*/aiperf/profile_export.jsonl")), "records")
    running.wait_for(lambda: len(records.read_text().splitlines()) == 4, "four records")
    running.process.kill()
    running.finish()
    again = bench.report(records.parent.parent)
    assert again.code == 130, again.err
    assert "Total requests:   4" in again.out
    assert "Interrupted" in again.out


@pytest.mark.process
def test_requests_of_the_users_own_need_no_factories(bench: Bench, stand_in: dict[str, str]) -> None:
    mine = bench.folder() / "mine.jsonl"
    mine.touch()
    given = json.dumps({"input-file": str(mine), "model": "m"})
    load = ("--concurrency", "2", "--num-requests", "4", "--output-dir", "runs", "--aiperf-only", "--json")
    done = bench.run(*load, "--url", NOBODY, "--aiperf-args", given, factories=None, environment=stand_in)
    assert done.code == 0, done.err
    assert json.loads(done.out)["aiperf"]["requests"] == 4
    assert not (done.folder_of_aiperf / "inputs.json").exists()
    again = bench.report(done.folder)
    assert again.code == 0
    assert again.out.startswith("RESULTS — aiperf")


@pytest.mark.process
def test_what_payload_factory_gives_is_checked_before_any_load(bench: Bench, stand_in: dict[str, str]) -> None:
    image = CHAT.replace('{"model": "demo", "messages": messages, "stream": True}', 'b"\\xff\\xd8"')
    arguments = ("--client-rps", "20", "--num-requests", "4", "--aiperf", "--url", NOBODY)
    done = bench.run(*arguments, factories=image, environment=stand_in)
    assert done.code == 2
    assert "payload 0 is not JSON" in done.err
    assert not done.out


@pytest.mark.process
def test_streams_among_whole_answers_are_refused_unless_it_is_said_how_to_take_them(
    bench: Bench, stand_in: dict[str, str]
) -> None:
    mixed = CHAT.replace(
        '"pre_computed": False, "input": lambda: {', '"pre_computed": True, "input": [{"prompt": ""}, {'
    )
    mixed = mixed.replace('"stream": True}}', '"stream": True}]}')
    arguments = ("--client-rps", "20", "--num-requests", "4", "--aiperf-only", "--url", NOBODY)
    for given, code in (({"model": "m"}, 2), ({"model": "m", "streaming": False}, 0)):
        done = bench.run(*arguments, "--aiperf-args", json.dumps(given), factories=mixed, environment=stand_in)
        assert done.code == code, done.err
        assert ("some payloads ask for a stream and others do not" in done.err) == (code == 2)


@pytest.mark.process
@pytest.mark.parametrize(("name", "key"), [("DEMO_TOKEN", KEY), ("DEMO", "x7Kq9ZpL2mVt4Rw8")])
def test_what_the_users_code_says_as_it_fails_is_reported_without_secrets(
    name: str, key: str, bench: Bench, stand_in: dict[str, str]
) -> None:
    failing = CHAT.replace("lambda: {", f"lambda: os.environ['{name}'] + {{").replace("import json", "import json, os")
    failing = failing.replace("from the user's code\"", f"from the user's code\", os.environ['{name}']")
    arguments = ("--client-rps", "20", "--num-requests", "4", "--aiperf-only", "--url", NOBODY)
    done = bench.run(*arguments, factories=failing, environment={**stand_in, name: key})
    assert done.code == 2
    assert "from the user's code [hidden]" in done.err
    assert "TypeError" in done.err
    assert key not in done.err


@pytest.mark.process
def test_the_real_one_sends_the_waves_load_and_its_numbers_are_the_endpoints(bench: Bench) -> None:
    script = aiperf_here()
    with bench.endpoint(servers=8, tokens=20) as endpoint:
        page = {"stream": "prometheus", "scrape_url": f"{endpoint.url}/metrics", "interval": 0.2}
        config = bench.folder() / "metrics.json"
        config.write_text(json.dumps([{**page, "metrics": ["demo_endpoint_busy_servers"]}]))
        done = bench.start(
            *("--client-rps", "20", "--num-requests", "40", "--success-threshold", "1"),
            *("--aiperf", "--url", endpoint.url, "--endpoint-config", config),
            *("--aiperf-args", json.dumps({"tokenizer": str(demo_tokenizer())})),
            factories=CHAT,
            target=endpoint,
            environment={BINARY: script, "BENCHMARK_API_KEY": KEY, "HF_ENDPOINT": NOBODY},
        ).finish(timeout=110)
        arrivals = endpoint.arrivals()
    assert done.exit_code == 0, done.out + done.err
    assert len(arrivals["sequence"]) == 80
    facts = json.loads((done.folder / "aiperf" / "summary.json").read_text())
    assert (facts["requests"], facts["ok"]) == (40, 40)
    assert (facts["tokens_in"], facts["tokens_out"]) == (3 * 40, 20 * 40)
    _check_times(facts, arrivals)
    assert facts["server_metrics"][0]["statistics"] != {}
    lines = (done.folder / "aiperf" / "inputs.json").read_text().splitlines()
    assert sum('"session_id"' in line for line in lines) == 40
    assert "RESULTS — aiperf" in done.out.split("Run directory")[1]
    assert files_holding(done.folder, [KEY]) == []
    again = bench.report(done.folder, "--json")
    assert json.loads(again.out)["aiperf"]["ok"] == 40


def _check_times(facts: dict[str, Any], arrivals: dict[str, Any]) -> None:
    """No request was faster to aiperf than to the endpoint."""
    spans = zip(arrivals["queued_ns"][40:], arrivals["finish_ns"][40:], strict=True)
    served = [(finish - queued) / 1e9 for queued, finish in spans]
    assert facts["times"]["latency"]["mean"] >= sum(served) / len(served)
    assert facts["times"]["latency"]["min"] >= min(served)
    assert facts["duration_s"] >= (arrivals["finish_ns"][-1] - arrivals["queued_ns"][40]) / 1e9


BAD: list[tuple[list[str], str]] = [
    (["--aiperf"], "give --url URL"),
    (["--aiperf", "--url", "ftp://x"], "--url must start with http"),
    (["--aiperf", "--aiperf-only", "--url", NOBODY], "not both"),
    (["--aiperf-only", "--url", NOBODY, "--slo", "p99<1s"], "--slo is for a wave"),
    (["--aiperf-only", "--url", NOBODY, "--aiperf-pause", "1"], "--aiperf-pause is for a wave"),
    (["--aiperf-args", "{}"], "--aiperf-args is for --aiperf"),
    (["--aiperf", "--url", NOBODY, "--aiperf-pause", "-1"], "--aiperf-pause must be from 0"),
    (["--aiperf", "--url", NOBODY, "--aiperf-args", "{"], "--aiperf-args is not valid JSON"),
    (["--aiperf", "--url", NOBODY, "--aiperf-args", "[1]"], "must be a JSON object"),
    (["--aiperf", "--url", NOBODY, "--aiperf-args", '{"a": {}}'], "a must be a string"),
    (["--aiperf", "--url", NOBODY, "--aiperf-args", '{"artifact_dir": "x"}'], "artifact-dir is set by this tool"),
    (["--aiperf", "--url", NOBODY, "--aiperf-args", '{"-f": "x"}'], "config is set by this tool"),
    (["--aiperf", "--url", NOBODY, "--aiperf-args", '{"num-profile-runs": 2}'], "num-profile-runs is set by this tool"),
    (
        ["--aiperf", "--url", NOBODY, "--aiperf-args", '{"profile-export-level": "summary"}'],
        "export-level must be records or raw",
    ),
    (
        ["--aiperf", "--url", NOBODY, "--aiperf-args", '{"input-file": "nope"}'],
        "input-file nope: there is no such file",
    ),
    (
        ["--aiperf", "--url", NOBODY, "--aiperf-args", '{"tokenizer": "./nope"}'],
        "tokenizer ./nope: there is no such folder",
    ),
    (["--aiperf", "--url", NOBODY], "AIPERF_BIN is nowhere"),
]


@pytest.mark.parametrize(("arguments", "said"), BAD, ids=[said for _, said in BAD])
def test_flags_that_cannot_work_are_reported_at_once(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(BINARY, "nowhere")
    file = tmp_path / "factories.py"
    file.write_text(CHAT)
    code = cli.main(["--factories-file", str(file), "--client-rps", "1", "--num-requests", "1", *arguments])
    reported = capsys.readouterr().err
    assert code == 2
    assert said in reported
    assert all(line.startswith("benchmark: ") for line in reported.splitlines())


def test_aiperf_is_found_by_its_variable_in_its_environment_and_on_path(
    tmp_path: Path, stand_in: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Path(stand_in[BINARY])
    script.chmod(0o755)
    monkeypatch.setattr(aiperf, "ENVIRONMENT", tmp_path / "none")
    assert Installation.find(stand_in).script == script
    assert Installation.find({"PATH": str(script.parent)}).script == script
    with pytest.raises(BenchmarkError, match=r"not installed.*--with-aiperf"):
        Installation.find({"PATH": str(tmp_path)})
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "bin").symlink_to(script.parent)
    monkeypatch.setattr(aiperf, "ENVIRONMENT", tmp_path / "made")
    assert Installation.find({"PATH": str(tmp_path)}).script == script
    link = tmp_path / "aiperf"
    link.symlink_to(script)
    assert Installation.find({BINARY: str(link)}) == Installation(script, script.parent / "python3")
    with pytest.raises(BenchmarkError, match="no Python next to it"):
        Installation.find({BINARY: str(Path(__file__))})
