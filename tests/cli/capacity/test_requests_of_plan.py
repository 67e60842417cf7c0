"""``benchmark capacity --verify`` sends the requests of the plan's search, and names or refuses what differs."""

from __future__ import annotations

import json
import os
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker import cli
from inference_benchmarker.cli.capacity import capacity_flags
from inference_benchmarker.cli.capacity.capacity import capacity_parser
from inference_benchmarker.cli.capacity.capacity_flags import make_question
from inference_benchmarker.cli.capacity.requests_of_plan import differing
from inference_benchmarker.cli.capacity.verifying import planned_by
from inference_benchmarker.cli.core.address_flags import take_endpoint, without_addresses
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.url import address_of
from inference_benchmarker.words.redact import HEADERS
from server_capacity.experiments.proof.planned import Planned, read_planned
from tests.fake_cloudwatch import alone
from tests.mentions import mentions
from tests.proofs import planned
from tests.scripted_server import ScriptedServer, answer

if TYPE_CHECKING:
    from inference_benchmarker.plan.plan import WavePlan

FILE = """
PORT = 1
WORK = "light"


def invoke_factory(endpoint_name=None):
    return lambda payload: print(endpoint_name)


def payload_factory():
    return {"pre_computed": True, "input": [WORK]}
"""
HERE, THERE = "http://10.1.2.3:9000", "http://10.1.2.4"


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(monkeypatch, tmp_path)
    monkeypatch.setenv(HEADERS, "")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.py").write_text(FILE)


def resolved(*arguments: str) -> tuple[Planned | None, WavePlan]:
    """The plan that is verified, if there is one, and the requests of the command."""
    parser = capacity_parser()
    rest, addresses = without_addresses(list(arguments), parser.flags)
    options, problems = parser.parsed(rest)
    found = planned_by(options, addresses)
    take_endpoint(options, problems, addresses, os.environ)
    return found, make_question(options, problems).plan


def plan_of(tmp_path: Path, *search: str) -> str:
    """The folder of a plan whose search was of these arguments."""
    _, wave = resolved(*search)
    return str(planned(tmp_path, "--target-rps", "100", wave=wave, arguments=None, name=None))


def requests(plan: WavePlan) -> dict[str, Any]:
    """All that shapes a request, as plan.json has it."""
    data = plan.to_json()
    names = ("factories_file", "locust_file", "factory_settings", "request_timeout_s", "retries", "max_answer_size")
    return {name: data[name] for name in (*names, "max_in_flight", "model_mix", "expect")}


@pytest.mark.parametrize(
    ("search", "again"),
    [
        ((f"{HERE}/a?b=c", "--body", '{"a": 1}', "--method", "PUT"), (f"{HERE}/a?b=c",)),
        ((f"{HERE}/a", "--body", "@f.py"), (HERE,)),
        ((HERE, "--request-timeout", "5", "--client-timeout", "2s", "--client-retries", "3"), (f"--url={HERE}",)),
        ((HERE, "--client-retries", "2", "--backoff", "exponential:1s..5s", "--max-in-flight", "7"), (HERE,)),
        ((f"{HERE}/v1", "--model", "m", "--input-tokens", "9", "--output-tokens", "8"), (f"{HERE}/v1",)),
        ((f"{HERE}/v1/completions?v=2", "--model", "m"), (f"{HERE}/v1/completions?v=2",)),
        ((f"{HERE}/a/v1/responses", "--model", "m", "--prompt", "hi"), (HERE,)),
        ((f"{HERE}/v1/rerank", "--model", "m", "--expect", "json", "--expect", "text:.*"), (f"{HERE}/v1/rerank",)),
        (("--factories-file", "f.py", "--set", "WORK=heavy", "--max-answer-size", "3MB"), ("--endpoint-name", "e")),
        (("--factories-file", "f.py", "--set", "WORK=a=b, c"), ("--factories-file", "f.py")),
        (("--locust-file", "f.py", "--url", HERE, "--request-timeout", "3"), (HERE,)),
        (("--factories-file", "f.py", "--model-mix", "a=3,b=1"), ("--endpoint-name", "e")),
    ],
)  # fmt: skip
def test_what_was_searched_is_asked_again(tmp_path: Path, search: tuple[str, ...], again: tuple[str, ...]) -> None:
    _, searched = resolved(*search)
    found, plan = resolved("--verify", plan_of(tmp_path, *search), *again)
    assert requests(plan) == requests(searched)
    assert found is not None
    assert differing(found, plan) == ()


@pytest.mark.parametrize(
    ("path", "flags", "sent_to"),
    [
        ("/a", ("--body", "x"), "/a"),
        ("/v1", ("--model", "m", "--input-tokens", "9"), "/v1"),
        ("/v1/completions", ("--model", "m"), "/v1"),
        ("/v1/embeddings", ("--model", "m"), "/v1"),
        ("/a/v1/responses", ("--model", "m", "--prompt", "hi"), "/a"),
        ("/rerank", (), ""),
        ("/v1/rerank", ("--model", "m"), "/v1"),
    ],
)
def test_another_server_gets_the_same_requests(tmp_path: Path, path: str, flags: tuple[str, ...], sent_to: str) -> None:
    folder = plan_of(tmp_path, HERE + path, *flags)
    _, searched = resolved(HERE + path, *flags)
    for url in (THERE, THERE + path):
        found, plan = resolved("--verify", folder, url)
        assert address_of(plan.factory_settings) == THERE + sent_to
        assert {name: value.replace(THERE, HERE) for name, value in plan.factory_settings.items()} == {
            **searched.factory_settings
        }
        assert found is not None
        assert found.is_there
        assert differing(found, plan) == ()


@pytest.mark.parametrize(
    ("search", "again", "said"),
    [
        ((f"{HERE}/a",), (), (f"its search sent to {HERE}/a", "benchmark capacity URL --verify")),
        ((f"{HERE}/a",), ("--endpoint-name", THERE), ("such requests name no endpoint", "Give the URL in its place")),
        ((f"{HERE}/a",), (f"{THERE}/b",), (f"sent to {HERE}/a, and this is another path", f"Give {THERE}/a")),
        ((f"{HERE}/a",), (f"{THERE}/a?b",), ("another path",)),
        ((f"{HERE}/v1", "--model", "m"), (f"{THERE}/v1/completions",), ("another path", f"Give {THERE}/v1")),
        ((f"{HERE}/a", "--body", "x"), (THERE, "--body", "x"), ("--body: --verify sends what the search of",)),
        ((f"{HERE}/a", "--body", "x"), (THERE, "--set", "BODY=y"), ("--set BODY: --verify sends what",)),
        (("--locust-file", "f.py", "--url", HERE), (), (f"its search sent to {HERE}", "Give the URL of an endpoint")),
        ((f"{HERE}/a",), (f"{THERE}/a", HERE), ("Give one URL, not 2.",)),
        (("--factories-file", "f.py"), (THERE,), ("ran f.py, which takes no URL", "--endpoint-name NAME")),
        ((f"{HERE}/a?key=sk-aaaaaaaaaaaaaaaaaaaaaa",), (THERE,), ("PATH held a secret", "Give the whole URL again")),
    ],
)  # fmt: skip
def test_requests_of_something_else_are_refused(
    tmp_path: Path, search: tuple[str, ...], again: tuple[str, ...], said: tuple[str, ...]
) -> None:
    folder = plan_of(tmp_path, *search)
    with pytest.raises(BenchmarkError) as error:
        resolved("--verify", folder, *again)
    assert mentions(str(error.value), *said)


def test_a_secret_is_not_in_a_plan_and_is_given_again(tmp_path: Path) -> None:
    url = f"{HERE}/a?key=sk-aaaaaaaaaaaaaaaaaaaaaa"
    folder = plan_of(tmp_path, url)
    assert "sk-aaaa" not in Path(folder, "fleet_plan.json").read_text()
    found, plan = resolved("--verify", folder, url)
    assert plan.factory_settings["PATH"].endswith("sk-aaaaaaaaaaaaaaaaaaaaaa")
    assert found is not None
    assert differing(found, plan) == ()


SECRET, OTHER = "sk-aaaaaaaaaaaaaaaaaaaaaa", "sk-bbbbbbbbbbbbbbbbbbbbbb"


@pytest.mark.parametrize(
    ("given", "clauses"),
    [
        (f'{{"api_key":"{SECRET}","q":1}}', ()),
        (f'{{"api_key":"{OTHER}","q":1}}', ()),  # a key may be renewed
        (f'{{"api_key":"{SECRET}","q":2}}', ('another BODY in place of {"api_key":"[hidden]","q":1}',)),
        ('{"tiny":0}', ('another BODY in place of {"api_key":"[hidden]","q":1}',)),
        ("{}", ('another BODY in place of {"api_key":"[hidden]","q":1}',)),
    ],
)
def test_what_is_given_for_a_setting_that_held_a_secret_is_compared_but_for_the_secret(
    tmp_path: Path, given: str, clauses: tuple[str, ...]
) -> None:
    folder = plan_of(tmp_path, HERE, "--body", f'{{"api_key":"{SECRET}","q":1}}')
    assert differing(*_both(resolved("--verify", folder, HERE, "--set", f"BODY={given}"))) == clauses


@pytest.mark.parametrize(
    ("flag", "value"),
    [("--expect", f"text:api_key={SECRET}"), ("--model-mix", f"{SECRET}=3,b=1")],
)
def test_a_flag_that_held_a_secret_is_given_again(tmp_path: Path, flag: str, value: str) -> None:
    folder = plan_of(tmp_path, "--factories-file", "f.py", flag, value)
    with pytest.raises(BenchmarkError) as raised:
        resolved("--verify", folder, "--endpoint-name", "e")
    assert mentions(str(raised.value), f"{flag} held a secret, which no plan stores", f"Give {flag} again")
    found, plan = _both(resolved("--verify", folder, "--endpoint-name", "e", flag, value))
    assert requests(plan) == requests(resolved("--factories-file", "f.py", flag, value)[1])
    assert not [each for each in differing(found, plan) if flag in each]


def test_a_limit_that_held_a_secret_is_given_again(tmp_path: Path) -> None:
    folder = Path(plan_of(tmp_path, "--factories-file", "f.py"))
    text = (folder / "fleet_plan.json").read_text()
    data = {key: value for key, value in json.loads(text).items() if key != "digest"}
    data["endpoints"][0]["limits"] = ["[hidden].p99<1s"]
    (folder / "fleet_plan.json").write_text(json.dumps(data))
    with pytest.raises(BenchmarkError, match="--slo held a secret, which no plan stores"):
        resolved("--verify", str(folder), "--endpoint-name", "e")


def test_a_secret_that_has_no_form_of_one_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET", "correct-horse")
    Path("f.py").write_text(FILE + 'PASS = ""\n')
    search = ("--factories-file", "f.py", "--set", "PASS=correct-horse", "--set", "WORK=k:correct-horse:1")
    folder = plan_of(tmp_path, *search)
    monkeypatch.delenv("MY_SECRET")
    again = ("--verify", folder, "--set", "PASS=battery-staple", "--set")
    assert differing(*_both(resolved(*again, "WORK=k:battery-staple:1"))) == ()
    assert differing(*_both(resolved(*again, "WORK=k:battery-staple:2"))) == ("another WORK in place of k:[hidden]:1",)


def test_a_flags_secret_that_has_no_form_of_one_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET", "correct-horse")
    folder = plan_of(tmp_path, "--factories-file", "f.py", "--expect", "text:k:correct-horse:1")
    monkeypatch.delenv("MY_SECRET")
    again = ("--verify", folder, "--endpoint-name", "e", "--expect")
    named = "the name e, which f.py does not use"
    same, another = (
        set(differing(*_both(resolved(*again, f"text:k:battery-staple:{end}")))) - {named} for end in (1, 2)
    )
    assert same == set()
    assert another == {"another --expect in place of text:k:[hidden]:1"}


@pytest.mark.parametrize(
    ("again", "clauses"),
    [
        (("--set", "WORK=light"), ("WORK=light in place of heavy",)),
        (("--set", "PORT=2", "--request-timeout", "9"), ("PORT=2 in place of the file's own", "--request-timeout 9")),
        (("--client-retries", "2"), ("--client-retries 2 in place of none",)),
        (("--factories-file", "g.py"), ("g.py in place of f.py",)),
    ],
)
def test_what_differs_from_the_search_is_named(
    tmp_path: Path, again: tuple[str, ...], clauses: tuple[str, ...]
) -> None:
    (tmp_path / "g.py").write_text(FILE.replace("light", "other"))
    folder = plan_of(tmp_path, "--factories-file", "f.py", "--set", "WORK=heavy", "--request-timeout", "5")
    found, plan = resolved("--verify", folder, *again)
    assert found is not None
    assert mentions(" ".join(differing(found, plan)), *clauses)
    assert len(differing(found, plan)) == len(clauses)


@pytest.mark.parametrize(
    ("source", "is_ignored"),
    [
        (FILE, False),
        (FILE.replace("print(endpoint_name)", "print(payload)"), True),
        (FILE.replace("endpoint_name=None", "*names"), False),
        (FILE.replace("def invoke_factory", "def other") + "\nfrom x import invoke_factory\n", False),
    ],
)
def test_a_name_that_the_file_does_not_use_is_no_endpoints(tmp_path: Path, source: str, *, is_ignored: bool) -> None:
    Path("f.py").write_text(source)
    folder = plan_of(tmp_path, "--factories-file", "f.py")
    clauses = differing(*_both(resolved("--verify", folder, "--endpoint-name", "e")))
    assert clauses == (("the name e, which f.py does not use",) if is_ignored else ())


def test_a_file_that_was_changed_since_is_named_and_one_that_was_renamed_is_the_same(tmp_path: Path) -> None:
    folder = plan_of(tmp_path, "--factories-file", "f.py", "--set", "WORK=heavy")
    Path("f.py").rename("g.py")
    found, plan = resolved("--verify", folder, "--factories-file", "g.py")
    assert plan.factory_settings == {"WORK": "heavy"}
    assert found is not None
    assert differing(found, plan) == ()
    Path("f.py").write_text(FILE + "WORKERS = 2\n")
    assert differing(*_both(resolved("--verify", folder))) == ("f.py was changed since the search",)


def _both(found: tuple[Planned | None, WavePlan]) -> tuple[Planned, WavePlan]:
    assert found[0] is not None
    return found[0], found[1]


def test_a_body_of_a_file_that_was_changed_since_is_named(tmp_path: Path) -> None:
    Path("body.json").write_text("1")
    folder = plan_of(tmp_path, HERE, "--body", "@body.json")
    Path("body.json").write_text("2")
    assert differing(*_both(resolved("--verify", folder, HERE))) == (
        "the file of BODY_FILE was changed since the search",
    )


def test_a_module_that_the_file_imports_and_that_was_changed_since_is_named(tmp_path: Path) -> None:
    Path("shapes.py").write_text("BODY = 'heavy'\n")
    Path("f.py").write_text(FILE + "\nimport shapes\n")
    folder = plan_of(tmp_path, "--factories-file", "f.py")
    assert differing(*_both(resolved("--verify", folder))) == ()
    Path("shapes.py").write_text("BODY = 'tiny'\n")
    clause = "shapes.py, which f.py imports, was changed since the search"
    assert differing(*_both(resolved("--verify", folder))) == (clause,)


def test_settings_of_the_environment_are_not_in_place_of_the_searchs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = plan_of(tmp_path, "--factories-file", "f.py", "--set", "WORK=heavy")
    monkeypatch.setenv("BENCHMARK_WORK", "light")
    monkeypatch.setenv("BENCHMARK_PORT", "7")
    found, plan = _both(resolved("--verify", folder))
    assert plan.factory_settings == {"WORK": "heavy", "PORT": "7"}
    assert differing(found, plan) == ("PORT=7 in place of the file's own",)


def test_a_plan_of_a_url_can_be_of_another_installation(tmp_path: Path) -> None:
    folder = Path(plan_of(tmp_path, f"{HERE}/a", "--body", "x"))
    data = json.loads((folder / "fleet_plan.json").read_text())
    del data["digest"]
    data["endpoints"][0]["factories_file"] = "/elsewhere/factories/http/factories_http.py"
    (folder / "fleet_plan.json").write_text(json.dumps(data))
    found, plan = _both(resolved("--verify", str(folder), THERE))
    assert plan.factory_settings["BODY"] == "x"
    assert differing(found, plan) == ()


def test_a_plan_of_an_earlier_version_loads_and_says_what_it_does_not_hold(tmp_path: Path) -> None:
    folder = Path(plan_of(tmp_path, f"{HERE}/a", "--body", "x"))
    data = json.loads((folder / "fleet_plan.json").read_text())
    del data["digest"], data["endpoints"][0]["requests"]
    (folder / "fleet_plan.json").write_text(json.dumps(data))
    assert read_planned(folder).requests is None
    with pytest.raises(BenchmarkError, match="its search sent to a URL, and "):
        resolved("--verify", str(folder))
    found, plan = _both(resolved("--verify", str(folder), f"{THERE}/b", "--body", "y"))
    assert plan.factory_settings["BODY"] == "y"
    assert any("does not hold the settings" in each for each in found.warnings)


@pytest.mark.process
def test_the_server_gets_what_the_search_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(capacity_flags, "LEAST_TIME_S", 1.0)
    body, header = '{"a": 1}', ("--header", "X-Own: mine")
    with ScriptedServer([[answer(b"{}")]]) as server, chdir(tmp_path):
        folder = plan_of(tmp_path, f"{HERE}/a?b=c", "--body", body, *header)
        monkeypatch.setenv(HEADERS, "")
        verify = ["capacity", server.url, "--verify", folder, "--output-dir", "out", "--time", "1", "--quiet"]
        assert cli.main(verify) == 2
        assert mentions(capsys.readouterr().err, "its search sent X-Own", "Give --header 'X-Own: VALUE' again")
        assert not server.asked

        assert cli.main([*verify, *header]) == 0

        (proof,) = Path("out").glob("*_proof/proof.json")
        data = json.loads(proof.read_text())
    assert {each.line for each in server.asked} == {"POST /a?b=c HTTP/1.1"}
    assert {each.body for each in server.asked} == {body.encode()}
    assert {each.headers.get("x-own") for each in server.asked} == {"mine"}
    assert data["headline"].startswith(f"Passed: {server.url}/a?b=c served 100/s for 1.0 s within every limit; planned")
    assert data["differences"] == []
    assert data["plan_limits"] == ["p90<1s", "success>=0.95"]
