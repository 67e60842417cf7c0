"""Which requests aiperf sends, and in which form: those of the wave, streamed as it streamed, or those of a file."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.plan import WavePlan
from server_capacity.aiperf import installation as aiperf
from server_capacity.aiperf.arguments import RAW, SESSIONS, STREAM, Requests
from server_capacity.aiperf.certificates import certificate_problems, certificates
from server_capacity.aiperf.inputs import given_requests, write_inputs, written
from server_capacity.aiperf.installation import Installation
from server_capacity.aiperf.options import AiperfOptions
from server_capacity.aiperf.stage import AiperfStage, prepared
from tests.fake_aiperf import STATISTICS, record
from tests.waves import make_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inference_benchmarker.wave.wave import Wave

URL = "http://127.0.0.1:9"
CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
ASKED = {**CHAT, **STREAM}
INSTALLATION = Installation(Path("aiperf"), Path(sys.executable))


class Runs:
    """The arguments of each run of aiperf, which leaves the export of one request."""

    def __init__(self) -> None:
        self.arguments: list[str] = []

    def __call__(self, _installation: Any, arguments: list[str], folder: Path, *_: Any, **__: Any) -> bool:
        self.arguments = arguments
        (folder / "profile_export.jsonl").write_text(json.dumps(record(1, 2)) + "\n")
        (folder / "profile_export_aiperf.json").write_text(json.dumps(STATISTICS))
        return False

    def value(self, flag: str) -> str:
        return self.arguments[self.arguments.index(flag) + 1]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    found = Runs()
    monkeypatch.setattr(aiperf, "run", found)
    return found


def options(*, only: bool = False, **given: Any) -> AiperfOptions:
    tokenizer = {"tokenizer": str(Path(__file__).parent)}
    return AiperfOptions(INSTALLATION, URL, only, {**tokenizer, **given}, 0.0)


def follow(wave: Wave | None, body: Mapping[str, Any], folder: Path, said: list[str], **given: Any) -> Path:
    """Aiperf's run after a wave, or alone, with requests of ours; the file that it was given."""
    made = folder / "made.json"
    write_inputs(made, iter([dict(body)] * 2))
    plan = WavePlan(OpenLoop(Decimal(1)), Bounds(num_requests=1), output_dir=folder)
    chosen = options(only=wave is None, **given)
    outcome = AiperfStage(chosen, plan, URL, Requests(made, SESSIONS, body), {}, said.append).follow(wave, [])
    assert outcome.result is not None
    return Path(outcome.result.folder) / "inputs.json"


@pytest.mark.parametrize(
    ("streamed", "given", "body", "more"),
    [
        (True, {}, CHAT, STREAM),
        (False, {}, CHAT, {}),
        (False, {"streaming": True}, CHAT, STREAM),
        (True, {"streaming": False}, CHAT, {}),
        (True, {}, {**CHAT, "stream": False}, {}),
        (False, {}, {**CHAT, "stream": True}, {}),
        (True, {}, {"model": "m", "input": "x"}, {}),
    ],
)
def test_it_streams_as_the_waves_client_did_where_the_payload_does_not_say(  # noqa: PLR0917
    streamed: bool, given: dict[str, Any], body: dict[str, Any], more: dict[str, Any], runs: Runs, tmp_path: Path
) -> None:
    wave = make_run(tmp_path / "wave", 20, stream=streamed)
    sent, asked = follow(wave, body, tmp_path, [], **given), {**body, **more}
    assert list(written(sent)) == [asked] * 2
    assert ("--streaming" in runs.arguments) == asked.get("stream", False)
    assert runs.value("--custom-dataset-type") == SESSIONS
    assert runs.value("--input-file") == str(sent)


def test_without_a_wave_it_is_said_that_answers_are_taken_whole(runs: Runs, tmp_path: Path) -> None:
    said: list[str] = []
    sent = follow(None, CHAT, tmp_path, said)
    assert list(written(sent)) == [CHAT] * 2
    assert "--streaming" not in runs.arguments
    assert [line for line in said if "aiperf measures whole answers" in line]
    said.clear()
    follow(None, {**CHAT, "stream": False}, tmp_path, said)
    assert said == []


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (json.dumps(ASKED) + "\n", RAW),
        ("\n" + json.dumps(CHAT) + "\n\n" + json.dumps(CHAT), RAW),
        (json.dumps({"model": "m", "prompt": "x"}), RAW),
        (json.dumps({"data": [{"session_id": "a", "payloads": [CHAT]}]}), SESSIONS),
        (json.dumps({"data": [{"session_id": "a", "payloads": [CHAT]}]}, indent=2), SESSIONS),
        (json.dumps({"text": "a prompt"}), None),
        (json.dumps({"timestamp": 5, "messages": []}), None),
        (json.dumps({"inputs": "x"}), None),
        (json.dumps({"data": []}), None),
        ("[1]", None),
        ("text,length\n", None),
        ("", None),
    ],
)
def test_a_file_of_requests_as_they_are_sent_is_reported_by_its_beginning(
    text: str, form: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(text)
    found = given_requests(path)
    assert (found and found.form) == form
    assert given_requests(tmp_path) is None


@pytest.mark.parametrize("streamed", [True, False])
def test_the_flags_of_such_a_file_come_by_themselves(streamed: bool, runs: Runs, tmp_path: Path) -> None:
    mine = tmp_path / "mine.jsonl"
    mine.write_text(json.dumps({**CHAT, "stream": streamed}) + "\n")
    run_of(mine, tmp_path)
    assert runs.value("--custom-dataset-type") == RAW
    assert runs.value("--dataset-sampling-strategy") == "sequential"
    assert runs.value("--endpoint-type") == "chat"
    assert runs.value("--model") == "m"
    assert runs.arguments.count("--input-file") == 1
    assert ("--streaming" in runs.arguments) == streamed


def test_what_is_said_of_a_file_counts(runs: Runs, tmp_path: Path) -> None:
    mine = tmp_path / "mine.jsonl"
    mine.write_text(json.dumps(ASKED) + "\n")
    run_of(mine, tmp_path, **{"custom-dataset-type": "single_turn", "model": "n"})
    assert runs.value("--custom-dataset-type") == "single_turn"
    assert runs.value("--model") == "n"
    assert "--streaming" not in runs.arguments
    run_of(mine, tmp_path, streaming=False)
    assert "--streaming" not in runs.arguments


@pytest.mark.parametrize(
    ("second", "said"), [(json.dumps(CHAT), "some payloads ask for a stream"), ("{", "not all lines are requests")]
)
def test_a_file_that_is_not_of_one_kind_is_refused(second: str, said: str, runs: Runs, tmp_path: Path) -> None:
    mine = tmp_path / "mine.jsonl"
    mine.write_text(f"{json.dumps(ASKED)}\n{second}\n")
    with pytest.raises(BenchmarkError, match=said):
        run_of(mine, tmp_path)
    assert runs.arguments == []


def run_of(file: Path, folder: Path, **given: Any) -> None:
    plan = WavePlan(OpenLoop(Decimal(1)), Bounds(num_requests=1), output_dir=folder)
    chosen = options(only=True, **{"input-file": str(file), **given})
    with prepared(chosen, plan, URL, {}, lambda _: None) as stage:
        assert stage.follow(None, []).result is not None


@pytest.mark.parametrize("name", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE"])
@pytest.mark.parametrize("own", [True, False])
def test_it_believes_the_authorities_of_other_clients_and_those_it_knows(own: bool, name: str, tmp_path: Path) -> None:
    (tmp_path / "mine.pem").write_text("-----mine-----\n")
    (tmp_path / "own.pem").write_text("-----own-----\n")
    given = {name: str(tmp_path / "mine.pem")} | ({"SSL_CERT_FILE": str(tmp_path / "own.pem")} if own else {})
    found = aiperf.environment_of(given, [], str(tmp_path))
    bundle = Path(found["SSL_CERT_FILE"]).read_text()
    assert bundle.startswith("-----mine-----\n")
    assert ("-----own-----" in bundle) == own
    assert found[name] == given[name]


def test_several_authorities_are_all_believed_each_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.pem").write_text(f"-----{name}-----\n")
    both = {"REQUESTS_CA_BUNDLE": str(tmp_path / "a.pem"), "AWS_CA_BUNDLE": str(tmp_path / "b.pem")}
    found = certificates({**both, "SSL_CERT_FILE": str(tmp_path / "a.pem")}, tmp_path)
    assert Path(found["SSL_CERT_FILE"]).read_text() == "-----a-----\n\n-----b-----\n"
    folder = certificates({"CURL_CA_BUNDLE": str(tmp_path), "SSL_CERT_DIR": "/mine"}, tmp_path)
    assert folder == {"SSL_CERT_DIR": f"{tmp_path}:/mine"}


def test_where_no_client_was_reported_of_any_it_is_left_to_openssl(tmp_path: Path) -> None:
    assert certificates({"PATH": "/bin", "SSL_CERT_FILE": "mine.pem", "AWS_CA_BUNDLE": ""}, tmp_path) == {}


def test_authorities_that_are_not_there_are_reported_where_they_are_needed(tmp_path: Path) -> None:
    given = {"AWS_CA_BUNDLE": "nowhere.pem"}
    assert certificate_problems("https://x", given) == ["AWS_CA_BUNDLE is nowhere.pem: there is no such file."]
    assert certificate_problems("http://x", given) == []
    assert certificates(given, tmp_path) == {}
