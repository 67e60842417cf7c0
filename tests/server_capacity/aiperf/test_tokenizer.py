"""The tokenizer that aiperf will count with: which one it is, and that one which cannot be loaded is reported early."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.system.packaged import demo_tokenizer
from server_capacity.aiperf import tokenizer as aiperf_tokenizer
from server_capacity.aiperf.installation import BINARY, Installation
from server_capacity.aiperf.tokenizer import Tokenizer, in_log, missing_folder
from tests.fake_aiperf import CHAT, NOBODY, STAND_IN, aiperf_here

if TYPE_CHECKING:
    from server_capacity.aiperf.arguments import Value
    from tests.bench import Bench

# As much of aiperf as loads a tokenizer.
LIBRARY = """
import os, sys, time, types
class TokenizerError(Exception): pass
class AmbiguousTokenizerNameError(ValueError): pass
class Tokenizer:
    @staticmethod
    def from_pretrained(name, trust_remote_code, revision):
        if name == "slow":
            time.sleep(600)
        if name == "crash":
            raise KeyError(name)
        if name == "builtin":
            if "NO_ROUTE" in os.environ:
                raise ConnectionError("no route to vocabularies.example")
            return
        if name == "two":
            raise AmbiguousTokenizerNameError("it may be one or the other")
        if (name, revision, trust_remote_code) != ("good", "v2", True):
            more = " hf-token-4711" * 99
            raise TokenizerError(f"Failed to load tokenizer '{name}': OSError: no hub,\\nhf-token-4711{more}")
def is_fake_model_name(name):
    return name == "mock"
for name in ("exceptions", "tokenizer", "tokenizer_fake_names"):
    sys.modules["aiperf.common." + name] = sys.modules[__name__]
sys.modules["aiperf.common"] = types.ModuleType("aiperf.common")
"""
GOOD: dict[str, Value] = {"tokenizer": "good", "tokenizer-revision": "v2", "tokenizer-trust-remote-code": True}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which ours is imported as aiperf."""
    folder = tmp_path_factory.mktemp("library")
    (folder / "aiperf.py").write_text(LIBRARY)
    return {"PYTHONPATH": str(folder), "HF_TOKEN": "hf-token-4711"}


def problem(environment: dict[str, str], **flags: Value) -> str | None:
    tokenizer = Tokenizer.of({name.replace("_", "-"): value for name, value in flags.items()})
    assert tokenizer is not None
    return tokenizer.problem(Path(sys.executable), environment, lambda _: None)


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ({"model": "m"}, "m"),
        ({"model": "m", "tokenizer": False}, "m"),
        ({"model": "m", "tokenizer": "t", "endpoint-type": "embeddings"}, "t"),
        ({"model": "m", "endpoint-type": "raw"}, None),
        ({"model": ["m", "n"]}, None),
        ({"model": "m,n"}, None),
    ],
)
def test_the_tokenizer_is_that_of_the_model_unless_another_is_named(flags: dict[str, Value], name: str | None) -> None:
    found = Tokenizer.of(flags)
    assert (found and found.name) == name


@pytest.mark.parametrize("name", ["./tok", "../tok", "/nowhere/tok", "~/tok", "models/llama/8b", __file__])
def test_a_path_must_lead_to_a_folder(name: str) -> None:
    said = missing_folder(name)
    assert said is not None
    assert name in said


@pytest.mark.parametrize("name", ["tok", "org/model", str(Path(__file__).parent)])
def test_a_name_may_be_one_on_a_hub_and_a_folder_is_one(name: str) -> None:
    assert missing_folder(name) is None


@pytest.mark.process
def test_what_can_be_loaded_is_no_problem(library: dict[str, str]) -> None:
    assert problem(library, **GOOD) is None
    assert problem(library, model="mock") is None


@pytest.mark.process
def test_what_cannot_be_loaded_is_reported_in_one_short_line_without_secrets(library: dict[str, str]) -> None:
    said = problem(library, model="demo")
    assert said is not None
    assert said.startswith(
        "aiperf cannot load the tokenizer 'demo' (the model's name; there is no folder of that name): OSError: no hub, "
    )
    assert "hf-t" not in said
    assert "\n" not in said
    assert len(said) < 400
    said = problem(library, tokenizer="two")
    assert said is not None
    assert said.endswith("'two' (there is no folder of that name): it may be one or the other")


@pytest.mark.process
@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ({"model": "mock"}, ", which it takes for the placeholder 'mock' as the model's name, and fetches"),
        ({"tokenizer": "builtin", "model": "m"}, ", which it fetches"),
    ],
)
def test_its_own_tokenizer_is_tried_too_because_it_comes_from_the_network(
    flags: dict[str, Value], why: str, library: dict[str, str]
) -> None:
    assert problem(library, **flags) is None
    said = problem({**library, "NO_ROUTE": "1"}, **flags)
    expected = (
        f"aiperf cannot load the tokenizer 'builtin'{why} from the network once: no route to vocabularies.example"
    )
    assert said == expected


@pytest.mark.process
def test_a_check_that_fails_or_lasts_is_no_verdict(library: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert problem({}, tokenizer="any") is None
    assert problem(library, tokenizer="crash") is None
    monkeypatch.setattr(aiperf_tokenizer, "LOAD_S", 0.3)
    monkeypatch.setattr(aiperf_tokenizer, "TELL_S", (0.1, 0.1))
    said: list[str] = []
    slow = Tokenizer.of({"tokenizer": "slow"})
    assert slow is not None
    assert slow.problem(Path(sys.executable), library, said.append) is None
    assert "loading the tokenizer 'slow'" in said[0]


@pytest.mark.process
def test_it_is_reported_before_any_load_is_sent(bench: Bench, library: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "aiperf").write_text(STAND_IN)
    (tmp_path / "python3").write_text(f'#!/bin/sh\nPYTHONPATH={library["PYTHONPATH"]} exec {sys.executable} "$@"\n')
    (tmp_path / "python3").chmod(0o755)
    arguments = ("--client-rps", "20", "--num-requests", "4", "--aiperf", "--url", NOBODY)
    done = bench.run(*arguments, factories=CHAT, environment={BINARY: str(tmp_path / "aiperf")})
    assert done.code == 2
    assert "cannot load the tokenizer 'demo'" in done.err
    assert json.dumps({"tokenizer": "FOLDER"}) in done.err
    assert not done.out
    assert "Traceback" not in done.err


@pytest.mark.process
def test_the_real_one_loads_the_demos_and_neither_an_empty_folder_nor_its_own_without_a_network(tmp_path: Path) -> None:
    python = Installation.find({BINARY: aiperf_here()}).python
    nowhere = {"HF_HUB_OFFLINE": "1", "HTTPS_PROXY": NOBODY, "https_proxy": NOBODY, "DATA_GYM_CACHE_DIR": str(tmp_path)}
    given: list[tuple[dict[str, Value], str]] = [
        ({"tokenizer": str(demo_tokenizer())}, ""),
        ({"tokenizer": str(tmp_path)}, str(tmp_path)),
        ({"model": "mock-model"}, "'builtin', which it takes for the placeholder 'mock-model'"),
    ]
    for flags, cannot in given:
        tokenizer = Tokenizer.of(flags)
        assert tokenizer is not None
        said = tokenizer.problem(python, {**os.environ, **nowhere}, lambda _: None)
        assert cannot in said if said else not cannot, said


def test_the_tokenizer_is_read_from_what_aiperf_logged() -> None:
    assert in_log("ERROR TokenizerError(\"Failed to load tokenizer 'a/b': OSError\")") == "a/b"
    assert in_log("the server said 500") is None
