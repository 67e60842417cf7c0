"""The settings of the shipped examples: each tells what it means, and reaches the requests that a server sees."""

from __future__ import annotations

import json
from contextlib import suppress
from types import GeneratorType
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.cli.core.examples import find, settings_page, shipped
from inference_benchmarker.embedded.aws.boto3_settings import isolated
from inference_benchmarker.engine.endpoint.factories_file import load
from inference_benchmarker.engine.endpoint.settings import Setting, settings_of
from inference_benchmarker.engine.endpoint.source import import_file
from tests.scripted_server import Asked, ScriptedServer, answer
from tests.shipped import FACTORIES, NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping

WITHOUT = {"lambda_function/factories_lambda_function"}  # everything there is the name of the function
NEEDS_PACKAGES = {"kserve_v2/factories_grpc", "kserve_v2/factories_grpc_stream"}
OF_A_SERVER = [
    name for name in NAMES if name.startswith(("openai_compatible/", "payload_sources/")) and "package" not in name
]


def as_text(setting: Setting) -> str:
    default = setting.default
    return str(default) if isinstance(default, (str, bool)) else json.dumps(default)


@pytest.mark.parametrize("name", sorted(set(NAMES) - WITHOUT))
def test_an_example_has_settings_that_say_what_they_mean(name: str) -> None:
    settings = settings_of(FACTORIES / f"{name}.py").values()
    reported = [setting for setting in settings if setting.about]
    assert reported
    assert all(len(setting.about) > 4 and not setting.about.startswith("put ") for setting in reported)
    page = settings_page(find(name, shipped()))
    assert all(f"   {setting.name}" in page for setting in reported)
    assert max(map(len, page.splitlines())) <= 120


@pytest.mark.parametrize("name", sorted(set(NAMES) - NEEDS_PACKAGES))
def test_an_example_that_is_set_to_its_defaults_is_the_same(name: str) -> None:
    path = FACTORIES / f"{name}.py"
    settings = {each.name: each for each in settings_of(path).values() if each.default is not None}
    module = import_file(path, {name: as_text(setting) for name, setting in settings.items()})
    assert {name: getattr(module, name) for name in settings} == {name: each.default for name, each in settings.items()}


def asked_by(name: str, settings: Mapping[str, str], patch: pytest.MonkeyPatch) -> Asked:
    """The first request of an example with these settings; its address among them is the server's."""
    with ScriptedServer([[answer(b"{}")]]) as server:
        for variable, value in isolated({}, "http://127.0.0.1:9").items():
            patch.setenv(variable, value)
        example = load(FACTORIES / f"{name}.py", settings={"URL": server.url, **settings})
        payload = example.build() if example.build else (example.payloads or [])[0]
        with suppress(Exception):  # what it makes of the answer is not looked at
            answered = example.invoke(payload)
            if isinstance(answered, GeneratorType):
                next(answered)
    return server.asked[0]


@pytest.mark.parametrize("name", OF_A_SERVER)
def test_address_and_model_need_no_edited_file(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asked_by(name, {"MODEL": "llama"}, monkeypatch)
    assert json.loads(asked.body)["model"] == "llama"


@pytest.mark.parametrize(
    ("settings", "line", "body"),
    [
        ({"OUTPUT_TOKENS": "7", "PROMPT": "Why?"}, "/v1/chat/completions", {"max_tokens": 7}),
        ({"API": "completions", "PROMPT": "Why?"}, "/v1/completions", {"prompt": "Why?", "stream": True}),
        ({"API": "embeddings", "PROMPT": "Why?"}, "/v1/embeddings", {"input": "Why?"}),
        ({"BASE_PATH": "/a", "QUERY": "v=1", "STREAM": "false"}, "/a/chat/completions?v=1", {"model": "demo"}),
        ({"MORE": '{"ignore_eos": true}', "OUTPUT_TOKENS": "0"}, "/v1/chat/completions", {"ignore_eos": True}),
        ({"BODY": '{"model": "own", "a": 1}'}, "/v1/chat/completions", {"model": "own", "a": 1}),
    ],
)
def test_what_an_address_runs_is_said_by_settings(
    settings: dict[str, str], line: str, body: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asked_by("openai_compatible/factories_by_url", settings, monkeypatch)
    sent = json.loads(asked.body)
    assert asked.line == f"POST {line} HTTP/1.1"
    assert body.items() <= sent.items()
    assert ("max_tokens" in sent) == (
        settings.get("OUTPUT_TOKENS") != "0" and "BODY" not in settings and "input" not in sent
    )
    assert ("stream" in sent) == (settings.get("STREAM") != "false" and "input" not in sent)


def test_prompts_are_as_long_as_they_are_set_and_never_sent_twice() -> None:
    example = load(FACTORIES / "openai_compatible/factories_by_url.py", settings={"INPUT_TOKENS": "30"})
    assert example.build is not None
    prompts = [example.build()["messages"][0]["content"] for _ in range(20)]
    assert {len(prompt.split()) for prompt in prompts} == {30}
    assert len(set(prompts)) == 20


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"requests\.jsonl is empty: expected a JSON object a line"),
        ("[1]", r"requests\.jsonl, line 1: expected a JSON object, found '\[1\]'"),
        ("{}\n\nnone", r"requests\.jsonl, line 3: expected a JSON object, found 'none'"),
    ],
)
def test_a_file_that_holds_no_requests_is_refused(tmp_path: object, text: str, said: str) -> None:
    path = f"{tmp_path}/requests.jsonl"
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(text)
    with pytest.raises(Exception, match=said):
        load(FACTORIES / "openai_compatible/factories_by_url.py", settings={"BODY_FILE": path})
