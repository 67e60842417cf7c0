"""Waves without a file: what is typed beside an address is what the server gets, and secrets stay where they are."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker import cli
from inference_benchmarker.cli.core.address_flags import looks_like_address, take_endpoint, without_addresses
from inference_benchmarker.cli.core.header_flags import headers_of, of_user
from inference_benchmarker.cli.endpoint.client import saturation_parser
from inference_benchmarker.cli.endpoint.client_flags import make_conditions
from inference_benchmarker.cli.wave.wave import wave_of, wave_options, wave_parser
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.exit_codes import BAD_INPUT
from inference_benchmarker.url import endpoint_address
from inference_benchmarker.words.redact import HEADERS
from tests.conftest import ROOT
from tests.mentions import mentions
from tests.scripted_server import ScriptedServer, answer

if TYPE_CHECKING:
    from tests.bench import Bench, Finished

SECRET = "sup3r-s3cret-value"
PASSWORD = "hunter2hunter2"
LOAD = ("--client-rps", "20", "--num-requests", "6")


@pytest.mark.parametrize(
    ("written", "expected"),
    [(None, "cannot be read (No such file or directory)"), ("nonsense = 3", "unknown key 'nonsense'")],
)
@pytest.mark.parametrize("how", [[], ["--url"]])
def test_what_is_wrong_with_a_configuration_file_is_all_that_is_reported(
    how: list[str], written: str | None, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "c.toml"
    if written is not None:
        config.write_text(written)
    assert cli.main([*how, "http://127.0.0.1:1/", "--config", str(config)]) == BAD_INPUT
    (line,) = capsys.readouterr().err.splitlines()
    assert expected in line


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (HEADERS, "BENCHMARK_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def options_of(*arguments: str, environment: dict[str, str] | None = None) -> tuple[dict[str, Any], list[str]]:
    """The options of a wave once its endpoint is taken, and what is wrong."""
    parser = wave_parser()
    rest, addresses = without_addresses(list(arguments), parser.flags)
    options, problems = wave_options(parser, rest)
    take_endpoint(options, problems, addresses, {} if environment is None else environment)
    return options, problems


@pytest.mark.parametrize(
    "word", ["http://h", "https://h/p", "htp://h", "unix:/a", "h:80", "1.2.3.4:80/p", "localhost/a"]
)
def test_a_word_is_meant_as_an_address(word: str) -> None:
    assert looks_like_address(word)


@pytest.mark.parametrize("word", ["check", "my_endpoint.py", "runs/base", "10:00..11:00", "a.b", "50:30s", "p99<1s"])
def test_a_word_is_meant_as_none(word: str) -> None:
    assert not looks_like_address(word)


def test_an_address_stands_where_it_likes_but_not_for_a_flags_value() -> None:
    flags = wave_parser().flags
    assert without_addresses(["--quiet", "http://h", "--url", "http://i"], flags) == (
        ["--quiet", "--url", "http://i"],
        ["http://h"],
    )
    assert without_addresses(["--name", "h:80", "--slo=p99<1s", "h:80"], flags)[1] == ["h:80"]
    assert without_addresses(["--unknown", "http://h"], flags)[1] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["localhost:8080/a"], "Write http:// or https:// before it: http://localhost:8080/a"),
        (["htp://h"], "Did you mean http://h?"),
        (["http:/h/a"], "Did you mean http://h/a?"),
        (["http://h/a", "--set", "PATH=/b"], "--set PATH: the URL already sets it; change it there."),
        (["http://h/a b"], "It contains a blank: write %20 instead."),
        (["http://::1:8080"], "Write an IPv6 address in brackets: http://[::1]:8080"),
        (["http://h:port"], "A port is a number from 1 to 65535"),
        (["unix:///var/run/a.sock"], "A Unix socket has no URL: give it a port"),
        (["grpc://h:80"], "It must begin with http:// or https://. For other protocols, `benchmark factory` lists"),
        (["http://h", "--header", "A: b", "--aiperf"], "--header: aiperf would show it among its arguments"),
        (["http://h", "http://i"], "Give one URL, not 2."),
        (["http://h", "--factories-file", "f.py"], "Give either a URL or --factories-file, not both."),
        (["http://h", "--body", "@-"], "--body @-: standard input is not read; give a file"),
        (["http://h", "--demo"], "Give either a URL or --demo, not both."),
        (["http://h", "--header", "no colon"], "--header must look like 'Name: value'"),
        (["http://h", "--header", "A: $NOT_SET_HERE"], "--header A: $NOT_SET_HERE is not set, or empty"),
        (["http://h", "--header", "a-b: 1", "--header", "A-B: 2"], "--header A-B is given twice"),
        (["http://h", "--body", "a", "--content-type", "a\r\nB: c"], "--content-type has a line break"),
        (
            ["http://h", "--body", "\udcff"],
            "--body has a byte that is not UTF-8. Bytes are given in a file: --body @FILE.",
        ),
        (["http://h/v1", "--model", "m\udcff"], "--model has a byte that is not UTF-8."),
        (["http://h/\udcff"], "It contains a byte that is not UTF-8."),
        (["http://a:\udcff@h/"], "In a password, signs are written as %XX"),
        (["http://h", "--body", "@/proc/self/mem"], "--body @/proc/self/mem: cannot be read (Input/output error)."),
        (["http://h", "--body", "@/dev/null"], "--body @/dev/null: this is a pipe or a device"),
        (["http://h", "--body", "@~nobody-of-that-name/a"], "--body @~nobody-of-that-name/a: there is no such file"),
        (["http://h", "--header", "content-length: 1"], "--header Content-Length: the client sets this header itself"),
        (["http://h", "--header", "A: \u20ac"], "--header A: its value has a line break or a character that no header"),
        (
            ["--factories-file", "factories_http"],
            "no such example. Give one of http/factories_http or kserve",
        ),
        (["--factories-file", "openai_compatible/chta"], "Did you mean openai_compatible/factories_chat"),
        (
            ["--factories-file", "a", "--set", "NOT_THERE=1"],
            "no such example. `benchmark factory` lists those there are",
        ),
        (["--body", "a"], "--body: only for a URL, as in `benchmark URL`."),
        (["--demo", "--header", "A: b"], "--header: only for a URL"),
    ],
)
def test_what_is_wrong_with_an_address_is_one_line(arguments: list[str], said: str) -> None:
    _, problems = options_of(*arguments)
    assert len([problem for problem in problems if said in problem]) == 1, problems
    assert len(problems) == 1, problems


def test_all_problems_are_reported_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["htp://h", "--method", "a b", "--set", "X", "--client-rps", "-1", "--prompt", "b"]) == 2
    reported = capsys.readouterr().err
    for said in ("Did you mean http://h?", "--set must be NAME=VALUE, not 'X'.", "--client-rps must be"):
        assert said in reported
    assert "No endpoint" not in reported


def test_of_what_is_sent_nothing_is_reported_where_nothing_will_be_sent(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["http://127.0.0.1:9/a", "--set", "NOT_THERE=1"]) == 2
    reported = capsys.readouterr().err
    assert reported.startswith(
        "benchmark: --set NOT_THERE: http/factories_http has no such setting; it has SERVER, PATH"
    )
    assert len(reported.splitlines()) == 1


def test_of_a_bad_address_no_load_is_missing() -> None:
    with pytest.raises(BenchmarkError) as raised:
        wave_of(["htp://h"])
    assert str(raised.value) == "'htp://h' is not a valid endpoint URL. Did you mean http://h?"


@pytest.mark.parametrize("name", ["API_KEY", "my_token", "Password"])
def test_a_secret_is_no_setting(name: str) -> None:
    with pytest.raises(BenchmarkError, match="its value would be stored; pass a secret in the environment") as raised:
        wave_of(["http://127.0.0.1:9", "--set", f"{name}={SECRET}"])
    assert SECRET not in str(raised.value)


def test_headers_are_taken_from_the_environment() -> None:
    problems: list[str] = []
    given = ["authorization:Bearer $A", "X-Key: ${B}c", "X-Price: $$5"]
    headers = headers_of(given, {"A": "1", "B": "2"}, problems)
    assert (headers, problems) == ({"Authorization": "Bearer 1", "X-Key": "2c", "X-Price": "$5"}, [])
    assert of_user(endpoint_address("http://me:p%40ss@h")) == {"Authorization": "Basic bWU6cEBzcw=="}


def test_a_file_that_reads_headers_gets_them() -> None:
    environment: dict[str, str] = {}
    _, problems = options_of("--factories-file", "http/factories_http", "--header", "a-b: c", environment=environment)
    assert (environment, problems) == ({HEADERS: '{"A-B": "c"}'}, [])


@pytest.mark.parametrize("endpoint", [["http://me:p4ssw0rd@h"], ["--factories-file", "http/factories_http"]])
def test_headers_of_the_environment_count_but_those_given_win(endpoint: list[str]) -> None:
    environment = {HEADERS: '{"x-team": "a", "authorization": "b", "x-other": "c"}'}
    _, problems = options_of(*endpoint, "--header", "X-Team: d", environment=environment)
    basic = {"Authorization": "Basic bWU6cDRzc3cwcmQ="} if "://" in endpoint[0] else {"Authorization": "b"}
    assert problems == []
    assert json.loads(environment[HEADERS]) == {"X-Team": "d", **basic, "X-Other": "c"}


@pytest.mark.parametrize("expected", ["[", "[]", '{"a": 1}', "[" * 100_000])
def test_what_are_no_headers_of_the_environment_is_said(expected: str) -> None:
    _, problems = options_of("http://h", environment={HEADERS: expected})
    assert problems == ['BENCHMARK_HEADERS in the environment must be a JSON object of texts, as in {"X-Own": "mine"}.']


def test_settings_of_the_environment_count_but_those_given_win() -> None:
    environment = {"BENCHMARK_MODEL": "a", "BENCHMARK_PROMPT_WORDS": "5", "BENCHMARK_API_KEY": "k", "PATH": "/bin"}
    name = "openai_compatible/factories_chat"
    options, problems = options_of("--factories-file", name, "--set", "MODEL=b", environment=environment)
    assert problems == []
    assert options["factories_file"] == str(ROOT / "factories" / f"{name}.py")
    assert options["set"] == ["MODEL=a", "PROMPT_WORDS=5", "MODEL=b"]


def test_a_plan_keeps_settings_and_no_header(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_OF_MINE", SECRET)
    plan = wave_of(["http://me:hunter2hunter2@127.0.0.1:9/a", "--header", "X-Key: $TOKEN_OF_MINE", "--quiet"])
    assert plan.factory_settings["SERVER"] == "http://127.0.0.1:9"
    assert type(plan).from_json(plan.to_json()) == plan
    assert not {SECRET, PASSWORD} & set(json.dumps(plan.to_json()).split('"'))
    assert json.loads(os.environ[HEADERS])["X-Key"] == SECRET
    wave_of(["http://127.0.0.1:9/b", "--quiet"])
    assert HEADERS not in os.environ  # those of the address before it


def test_a_secret_in_the_address_is_not_stored() -> None:
    plan = wave_of([f"http://127.0.0.1:9/a?token={SECRET}", "--quiet"])
    assert plan.factory_settings["PATH"] == f"/a?token={SECRET}"
    assert plan.public_json()["factory_settings"]["PATH"] == "/a?token=[hidden]"


VLLM = answer(b'{"data": [{"id": "m", "owned_by": "vllm"}]}')


@pytest.mark.parametrize(
    ("more", "environment", "sent"),
    [
        ([], {}, ['MORE={"ignore_eos": true}']),
        (["--set", "MORE={}"], {}, ["MORE={}"]),
        ([], {"BENCHMARK_MORE": '{"top_k": 1}'}, ['MORE={"top_k": 1}']),
    ],
)
def test_a_server_that_knows_how_is_asked_for_whole_answers_unless_told_otherwise(
    more: list[str], environment: dict[str, str], sent: list[str]
) -> None:
    with ScriptedServer([[VLLM]]) as server:
        options, problems = options_of(f"{server.url}/v1", "--turns", "2", *more, environment=environment)
    assert not problems
    assert [each for each in options["set"] if each.startswith("MORE")] == sent
    assert [each for each in options["set"] if each.startswith("CONTINUOUS")] == ["CONTINUOUS_USAGE=true"]


@pytest.mark.parametrize(("kind", "name"), [("fresh", "SALT"), ("warm", "WARM")])
def test_what_the_cache_has_is_a_constant_of_a_file(kind: str, name: str, tmp_path: Path) -> None:
    file = tmp_path / "f.py"
    file.write_text(f'{name} = ""\n')
    options, problems = options_of("--factories-file", str(file), "--cache", kind)
    assert not problems
    assert [each.partition("=")[0] for each in options["set"]] == [name]
    file.write_text("OTHER = 1\n")
    _, problems = options_of("--factories-file", str(file), "--cache", kind)
    assert problems == [f"--cache {kind}: for conversations at an address, or a file with a constant {name}."]


def test_to_a_locust_file_an_address_is_its_host() -> None:
    options, problems = options_of("http://h:1", "--locust-file", "f.py")
    assert (options["url"], options["factories_file"], problems) == ("http://h:1", None, [])


def test_aiperf_is_sent_to_the_same_server() -> None:
    options, problems = options_of("http://h:1/v1", "--model", "m", "--aiperf")
    assert (options["url"], problems) == ("http://h:1", [])


def everything_in(finished: Finished) -> str:
    """All that a wave left and printed."""
    files = [path.read_bytes().decode("latin-1") for path in finished.folder.rglob("*") if path.is_file()]
    return "".join([finished.out, finished.err, *files])


@pytest.mark.process
def test_the_server_gets_what_was_typed_and_secrets_are_stored_nowhere(bench: Bench) -> None:
    folder = bench.folder()
    (folder / "bodies.jsonl").write_text('{"n": 0}\n\n{"n": 1}\n{"n": 2}\n')
    echo = answer(f"key {SECRET}, {PASSWORD} and bWU6aHVudGVyMmh1bnRlcjI=".encode(), "500 Broken")
    with ScriptedServer([[echo]]) as server:
        running = bench.start(
            *(server.url.replace("//", f"//me:{PASSWORD}@") + "/a?b=c", *LOAD),
            *("--method", "put", "--body", "@bodies.jsonl", "--header", "x-api-key: $MY_VALUE", "--output-dir", "runs"),
            factories=None,
            folder=folder,
            environment={"MY_VALUE": SECRET},
        )
        running.wait_for(lambda: server.asked, "a request")
        of_children = [child.cmdline() for child in running.children.values()]
        finished = running.finish()
    assert finished.code in (1, 3), finished.err  # a busy machine may be the limit, too
    assert of_children
    assert not [line for line in of_children if {SECRET, PASSWORD} & set(" ".join(line).split())]
    left = everything_in(finished)
    assert "HttpStatusError 500" in left
    assert [each for each in (SECRET, PASSWORD, "bWU6aHVudGVy") if each in left] == []
    assert sorted(asked.body for asked in server.asked) == sorted([b'{"n": 0}', b'{"n": 1}', b'{"n": 2}'] * 2)
    assert {asked.line for asked in server.asked} == {"PUT /a?b=c HTTP/1.1"}
    headers = server.asked[0].headers
    assert (headers["x-api-key"], headers["content-type"]) == (SECRET, "application/json")
    assert headers["authorization"] == "Basic bWU6aHVudGVyMmh1bnRlcjI="


@pytest.mark.process
def test_a_model_is_found_and_its_streams_are_measured(bench: Bench) -> None:
    with bench.endpoint(service_s=0.001) as endpoint:
        finished = bench.run(
            *(f"{endpoint.url}/v1", "--output-tokens", "8", "--input-tokens", "30", *LOAD, "--output-dir", "runs"),
            factories=None,
        )
        routes = endpoint.arrivals()["route"]
    assert mentions(finished.err, "30 input tokens", "8")
    assert routes == ["/v1/chat/completions"] * 6
    assert (finished.summary["ttft"]["count"], finished.summary["itl"]["count"]) == (6, 6 * 7)
    assert finished.summary["tokens"]["tokens_in_per_request"]["min"] == 30
    assert finished.summary["tokens"]["tokens_out"] == 6 * 8
    stored = json.loads((finished.folder / "plan.json").read_text())
    assert (stored["factory_settings"]["MODEL"], stored["factory_settings"]["OUTPUT_TOKENS"]) == ("demo", "8")


def test_without_a_load_a_gentle_one_is_chosen_and_reported(capsys: pytest.CaptureFixture[str]) -> None:
    plan = wave_of(["http://127.0.0.1:9/a"])
    assert (plan.target_rate, plan.expected_s) == (10, 10)
    text = "GET http://127.0.0.1:9/a.\nChosen by default: --client-rps 10 --obs-time 10.\n"
    assert capsys.readouterr().err == text
    plan = wave_of(["http://127.0.0.1:9/v1", "--model", "m", "--concurrency", "3"])
    assert plan.expected_s == 10
    assert "Chosen by default: --obs-time 10.\n" in capsys.readouterr().err
    wave_of(["http://127.0.0.1:9/a", "--client-rps", "5", "--num-requests", "5"])
    assert capsys.readouterr().err == "GET http://127.0.0.1:9/a.\n"


@pytest.mark.parametrize("command", ["worker-saturation", "rps-saturation"])
def test_a_search_for_the_clients_limits_takes_an_address(command: str) -> None:
    options, problems = saturation_parser(command).parsed(["--method", "PUT"])
    take_endpoint(options, problems, ["http://127.0.0.1:9/a"], {})
    plan = make_conditions(command, options, problems).plan(5.0, 1, Path())
    assert (plan.factory_settings["METHOD"], plan.factory_settings["PATH"]) == ("PUT", "/a")


@pytest.mark.process
def test_check_takes_an_address(bench: Bench) -> None:
    with bench.endpoint() as endpoint:
        body = ("--body", '{"inputs": "a"}')
        finished = bench.run("check", f"{endpoint.url}/invocations", *body, "--json", factories=None)
        assert endpoint.arrivals()["route"][0] == "/invocations"
    assert finished.code == 0, finished.err
    assert "POST http://" in finished.err


def test_a_capacity_search_takes_an_address(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ["capacity", "http://127.0.0.1:9/a", "--body", f"@{tmp_path}", "--set", "NOTHING=1"]
    assert cli.main(arguments) == 2
    reported = capsys.readouterr().err
    assert "this is a folder" in reported
    assert "No endpoint" not in reported
