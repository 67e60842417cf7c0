"""An address and its flags become a shipped file and its settings; what goes together and what does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.engine.endpoint.address_options import (
    CONVERSATIONS_FILE,
    OPENAI_FILE,
    RESPONSES_FILE,
    AddressOptions,
    Described,
)
from inference_benchmarker.engine.endpoint.addressed import describe
from inference_benchmarker.engine.endpoint.settings import settings_of
from inference_benchmarker.plan.conversation import SharedPrefix, TurnCount
from inference_benchmarker.system.packaged import HTTP_FILE, packaged
from inference_benchmarker.url import endpoint_address

if TYPE_CHECKING:
    from pathlib import Path


def described(url: str, **asked: Any) -> Described:
    problems: list[str] = []
    found = describe(endpoint_address(url), AddressOptions(**asked), problems)
    assert problems == []
    known = settings_of(packaged("factories", found.file))
    assert found.settings.keys() <= known.keys()
    for name, text in found.settings.items():
        known[name].value(text)
    return found


def refused(url: str, **asked: Any) -> list[str]:
    problems: list[str] = []
    describe(endpoint_address(url), AddressOptions(**asked), problems)
    return problems


@pytest.mark.parametrize(
    ("url", "file", "settings"),
    [
        ("http://h", HTTP_FILE, {"SERVER": "http://h", "PATH": "/", "METHOD": "GET", "CONTENT_TYPE": ""}),
        ("http://[::1]:8/a/?b=c#d", HTTP_FILE, {"SERVER": "http://[::1]:8", "PATH": "/a/?b=c"}),
        ("http://u:p@h/x y".replace(" ", "%20"), HTTP_FILE, {"SERVER": "http://h", "PATH": "/x%20y"}),
        ("http://h/é", HTTP_FILE, {"PATH": "/%C3%A9"}),
        ("http://h:1/v1", OPENAI_FILE, {"URL": "http://h:1", "BASE_PATH": "/v1", "API": "chat"}),
        ("http://h/openai/v1/", OPENAI_FILE, {"URL": "http://h", "BASE_PATH": "/openai/v1", "API": "chat"}),
        ("http://h/v1/chat/completions", OPENAI_FILE, {"BASE_PATH": "/v1", "API": "chat"}),
        ("http://h/v1/completions", OPENAI_FILE, {"BASE_PATH": "/v1", "API": "completions"}),
        ("http://h/v1/embeddings", OPENAI_FILE, {"BASE_PATH": "/v1", "API": "embeddings"}),
        ("http://h/d/chat/completions?v=1", OPENAI_FILE, {"BASE_PATH": "/d", "QUERY": "v=1"}),
        ("http://h/a/v1/responses", RESPONSES_FILE, {"URL": "http://h/a"}),
        ("http://h/v1/models", HTTP_FILE, {"PATH": "/v1/models"}),
        ("http://h/v2", HTTP_FILE, {"PATH": "/v2"}),
    ],
)
def test_an_address_says_what_is_there(url: str, file: str, settings: dict[str, str]) -> None:
    found = described(url)
    assert found.file == file
    assert settings.items() <= found.settings.items()


def test_a_model_is_asked_for_where_none_is_named() -> None:
    assert described("http://h/p/v1").models == "http://h/p/v1/models"
    assert described("http://h/v1/responses").models == "http://h/v1/models"
    assert described("http://h/v1", model="a").models is None
    assert described("http://h/v1", body="{}").models is None
    assert described("http://h/v1").with_model("b").settings["MODEL"] == "b"


@pytest.mark.parametrize("asked", [{"method": "GET"}, {"content_type": "text/plain", "body": "a"}])
def test_openais_address_may_be_asked_as_any_other(asked: dict[str, str]) -> None:
    assert described("http://h/v1", **asked).file == HTTP_FILE


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ('{"a": 1}', "application/json"),
        ("[1]", "application/json"),
        ("1,2,3", "text/plain; charset=utf-8"),
        ("", "text/plain; charset=utf-8"),
        ("@a.json", "application/json"),
        ("@a.jsonl", "application/json"),
        ("@a.csv", "text/csv"),
        ("@a.jpg", "image/jpeg"),
        ("@json", "application/json"),
        ("@bytes", "application/octet-stream"),
    ],
)
def test_a_body_tells_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, kind: str) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.json", "a.jsonl", "a.csv", "a.jpg", "json"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "bytes").write_bytes(b"\xff\x00")
    found = described("http://h", body=body).settings
    assert (found["METHOD"], found["CONTENT_TYPE"]) == ("POST", kind)
    assert found.get("BODY_FILE", found.get("BODY")) == (str(tmp_path / body[1:]) if body[:1] == "@" else body)
    assert described("http://h", body=body, content_type="a/b").settings["CONTENT_TYPE"] == "a/b"


def test_lengths_and_prompts_are_settings() -> None:
    found = described("http://h/v1", model="m", input_tokens=5, output_tokens=6)
    assert (found.settings["INPUT_TOKENS"], found.settings["OUTPUT_TOKENS"]) == ("5", "6")
    assert "5 input tokens, up to 6 output tokens, model m" in found.words
    assert described("http://h/v1", prompt="Why?").settings["PROMPT"] == "Why?"
    sizes = described("http://h/v1/responses", input_tokens=5, output_tokens=6).settings
    assert (sizes["PROMPT_WORDS"], sizes["MAX_TOKENS"]) == ("5", "6")


@pytest.mark.parametrize(
    ("url", "asked", "said"),
    [
        (
            "http://h:8000",
            {"model": "a", "prompt": "b"},
            "--model, --prompt: only for an OpenAI-compatible API, at a URL",
        ),
        ("http://h:8000", {"model": "a"}, "Did you mean http://h:8000/v1?"),
        ("http://h", {"content_type": "a/b"}, "--content-type describes a --body, and there is none."),
        ("http://h", {"method": "G T"}, "--method must be one word, such as PUT, not 'G T'."),
        ("http://h", {"body": "@none.json"}, "--body @none.json: there is no such file."),
        ("http://h", {"body": "@/"}, "--body @/: this is a folder; give the file in it."),
        ("http://h/v1", {"body": "{}", "prompt": "b"}, "Give either --body or --prompt."),
        ("http://h/v1", {"input_tokens": 1, "prompt": "b"}, "Give either --prompt or --input-tokens."),
        ("http://h/v1", {"body": "{}", "output_tokens": 3}, "--output-tokens is not for a --body"),
        ("http://h/v1/embeddings", {"output_tokens": 3}, "--output-tokens: embeddings have no output tokens"),
        ("http://h/v1", {"input_tokens": 0}, "--input-tokens must be at least 1, not 0."),
        ("http://h/v1", {"output_tokens": -1}, "--output-tokens must be at least 1, not -1."),
    ],
)
def test_what_does_not_go_together_is_said(url: str, asked: dict[str, Any], said: str) -> None:
    (problem,) = refused(url, **asked)
    assert said in problem


def test_turns_make_conversations_of_an_address() -> None:
    prefix, turns = SharedPrefix.parse("400:groups=5:zipf=1.1"), TurnCount.parse("uniform:2..4")
    found = described(
        "http://h/v1", turns=turns, shared_prefix=prefix, history="recorded", session_header="X-S", output_tokens=9
    )
    assert found.file == CONVERSATIONS_FILE
    assert found.settings == {
        "URL": "http://h",
        "BASE_PATH": "/v1",
        "MODEL": "",
        "TURNS": "uniform:2..4",
        "OUTPUT_TOKENS": "9",
        "SHARED_PREFIX": "400:groups=5:zipf=1.1",
        "HISTORY": "recorded",
        "SESSION_HEADER": "X-S",
    }
    assert found.with_seed("7").settings["SEED"] == "7"
    assert found.with_seed(None).settings["SEED"] != found.with_seed(None).settings["SEED"]


def test_answers_are_whole_where_the_server_knows_how_and_conversations_are_made_up() -> None:
    made_up, single = described("http://h/v1", turns=TurnCount.parse("2")), described("http://h/v1")
    reported = made_up.with_whole_answers("vllm")
    assert reported.settings == {**made_up.settings, "MORE": '{"ignore_eos": true}'}
    assert reported.words.endswith(", all of them with " + '{"ignore_eos": true}')
    assert made_up.with_whole_answers("sglang").settings == reported.settings
    assert made_up.with_whole_answers("llamacpp") == made_up
    assert single.with_whole_answers("vllm") == single


@pytest.mark.parametrize("server", ["vllm", "sglang"])
@pytest.mark.parametrize("turns", [None, TurnCount.parse("2")])
def test_streams_tell_the_tokens_of_each_piece_where_the_server_knows_how(turns: TurnCount | None, server: str) -> None:
    streamed = described("http://h/v1", turns=turns)
    reported = streamed.with_counted_pieces(server)
    assert reported.settings == {**streamed.settings, "CONTINUOUS_USAGE": "true"}
    assert reported.words == f"{streamed.words}, usage in each piece"
    assert streamed.with_counted_pieces("llamacpp") == streamed


@pytest.mark.parametrize("address", ["http://h/v1/embeddings", "http://h/v1/responses", "http://h/v1/rerank"])
def test_usage_in_each_piece_is_asked_of_streamed_chats_and_completions_alone(address: str) -> None:
    found = described(address)
    assert found.with_counted_pieces("vllm") == found


def test_a_cache_is_warmed_by_a_setting() -> None:
    prefix, turns = SharedPrefix.parse("400"), TurnCount.parse("2")
    assert described("http://h/v1", turns=turns, shared_prefix=prefix, cache="warm").settings["WARM"] == "true"


@pytest.mark.parametrize(
    ("url", "asked", "said"),
    [
        (
            "http://h/v1",
            {"history": "live", "session_header": "X"},
            "--history, --session-header: only for conversations",
        ),
        ("http://h/v1/embeddings", {"turns": TurnCount.parse("2")}, "this is a URL of embeddings"),
        ("http://h/v1", {"turns": TurnCount.parse("2"), "prompt": "a"}, "leave --prompt out"),
        ("http://h/x", {"turns": TurnCount.parse("2")}, "--turns: only for an OpenAI-compatible API"),
        ("http://h/v1", {"turns": TurnCount.parse("2"), "cache": "warm"}, "give --shared-prefix, too"),
        ("http://h/v1", {"recorded": "talks.json", "cache": "warm"}, "for --turns with --shared-prefix"),
        ("http://h/v1", {"cache": "warm"}, "--cache: only for conversations"),
    ],
)
def test_what_does_not_go_with_turns_is_said(url: str, asked: dict[str, Any], said: str) -> None:
    assert any(said in problem for problem in refused(url, **asked)), refused(url, **asked)
