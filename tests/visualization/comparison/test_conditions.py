"""The conditions of two waves: the differences of their plans that are listed, and their words."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import fields, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.facts.wave_facts import OF_MODULES, OF_SETTINGS
from inference_benchmarker.plan.expectation import Expectation
from inference_benchmarker.plan.hosts import Hosts, hosts_in
from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.plan.model_mix import ModelMix
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.recorded import Conversations
from inference_benchmarker.plan.replay import Recording, Replay
from inference_benchmarker.plan.retries import Retries
from inference_benchmarker.recording.conversations.reading import read_conversations
from inference_benchmarker.recording.reading import read
from inference_benchmarker.wave.environment import describe_environment
from inference_benchmarker.words.units import NS
from tests.case import case
from tests.waves import drawn, wave
from visualization.comparison.comparison import compare
from visualization.comparison.conditions import OF_NO_EFFECT
from visualization.comparison.headline import headline

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inference_benchmarker.wave.wave import Wave


def replayed(**more: Any) -> Wave:
    """A replay of access.log; ``more``: facts of what was in it."""
    facts = Recording("nginx", "time", "s", "UTC", 660, 120, 5 * NS, 6 * NS, NS, 6 * NS, 20)
    load = OpenLoop(replay=Replay(Path("access.log"), recording=replace(facts, **more)))
    made = wave(drawn(1))
    return replace(made, plan=replace(made.plan, load=load))


@pytest.mark.parametrize(
    ("base", "new", "texts"),
    [
        ({}, {}, ()),
        ({}, {"peak_rps": 21, "first_ns": 5 * NS + 7}, ()),  # the seed spreads times of whole seconds
        ({}, {"size_bytes": 661}, ("660 bytes", "661 bytes")),
        ({}, {"rows": 121}, ("120 requests in 6 s", "121 requests in 6 s")),
        ({}, {"first_ns": 86400 * NS}, ("660 bytes), unlike",)),
        ({"times_sha256": "a" * 64}, {"times_sha256": "b" * 64}, ("times aaaaaaaa)", "times bbbbbbbb)")),
        ({"times_sha256": "a" * 64}, {"times_sha256": "a" * 64}, ()),
        ({"times_sha256": "a" * 64}, {}, ()),  # of an earlier version, which took none
        ({"times_sha256": "a" * 64}, {"size_bytes": 661}, ("times aaaaaaaa)", "661 bytes")),
    ],
)
def test_replays_of_one_file_are_distinguished_by_what_was_in_it(
    base: dict[str, Any], new: dict[str, Any], texts: tuple[str, ...]
) -> None:
    found = compare(replayed(**base), replayed(**new))
    assert (found.unlike == (), found.loads == "") == (not texts, not texts)
    assert headline(found).startswith("Different loads (access.log recorded (120 requests") == bool(texts)
    assert [text for text in texts if text not in found.loads] == []


def test_a_digest_is_of_the_recorded_times_and_not_of_their_spread(tmp_path: Path) -> None:
    def digest(times: Iterable[float], seed: int) -> str:
        file = tmp_path / "traffic.csv"
        file.write_text("timestamp\n" + "".join(f"{each}\n" for each in times))
        recording = read(Replay(file), seed, None, tmp_path).recording
        assert recording is not None
        return recording.times_sha256

    seconds = [each // 5 for each in range(100)]
    assert digest(seconds, 1) == digest(seconds, 2) == digest(seconds[::-1], 3)
    assert digest(seconds, 1) != digest([*seconds[:-1], 20], 1)
    exact = [each / 7 for each in range(100)]
    assert digest(exact, 1) == digest(exact, 2) != digest([each + 0.001 for each in exact], 1) != digest(seconds, 1)


def test_a_digest_is_of_all_turns_that_were_read(tmp_path: Path) -> None:
    def digest(text: str) -> str:
        file = tmp_path / "talks.jsonl"
        file.write_text(json.dumps({"messages": [{"role": "user", "content": text}]}) + "\n")
        recorded = read_conversations(Conversations(file), None, tmp_path).recorded
        assert recorded is not None
        return recorded.turns_sha256

    assert digest("a cat") == digest("a cat") != digest("a dog")


UNLIKE: dict[str, dict[str, Any]] = {
    "load": {"load": OpenLoop(Decimal(50))},
    "conversations": {"conversations": Conversations(Path("t.jsonl"))},
    "workers": {"workers": 7},
    "hosts": {"hosts": Hosts(hosts_in("load1*1"))},
    "warmup_s": {"warmup_s": Decimal(3)},
    "drain_timeout_s": {"drain_timeout_s": Decimal(3)},
    "request_timeout_s": {"request_timeout_s": Decimal("0.05")},
    "max_answer_size": {"max_answer_size": 1024},
    "expect": {"expect": (Expectation("json", "json"),)},
    "model_mix": {"model_mix": ModelMix.parse("a=3,b=1")},
    "retries": {"retries": Retries(Decimal(1), 3)},
    "max_in_flight": {"max_in_flight": 2},
    "payload_arguments": {"payload_arguments": {"size": 4096}},
    "factory_settings": {"factory_settings": {"BODY": "{}"}},
}
"""A change of each field of a plan that shapes requests or their times."""


def test_every_field_of_a_plan_is_compared_or_has_a_reason_not_to_be() -> None:
    """So that a flag that is added is not compared in silence: it is one of the conditions until somebody lists it."""
    names = {each.name for each in fields(WavePlan)}
    assert UNLIKE.keys() | (OF_NO_EFFECT.keys() - {"payload_arguments", "factory_settings"}) == names
    base = wave(drawn(1))
    for name, change in UNLIKE.items():
        with case(name):
            (clause,) = compare(base, replace(base, plan=replace(base.plan, **change))).unlike
            assert " and " in clause or clause in ("the settings BODY", "the payload arguments size")


def test_a_field_without_words_of_its_own_is_compared_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(OF_NO_EFFECT, "records")
    base = wave(drawn(1))
    assert compare(base, replace(base, plan=replace(base.plan, records="none"))).unlike == (
        "records all and records none",
    )


def test_what_a_field_means_is_compared_and_not_how_it_was_given() -> None:
    base = wave(drawn(1))
    changes: dict[str, Any] = {"max_in_flight": 10_000, "warmup_s": Decimal("0.0"), "payload_arguments": {}}
    for name, value in changes.items():
        assert compare(base, replace(base, plan=replace(base.plan, **{name: value}))).unlike == ()


def test_files_that_settings_name_are_compared_by_their_content() -> None:
    def sent(path: str, digest: object) -> Wave:
        made = wave(drawn(1), factory_settings={"BODY_FILE": path})
        return replace(made, environment={OF_SETTINGS: digest})

    a, b = {"BODY_FILE": "aa"}, {"BODY_FILE": "bb"}
    assert compare(sent("/x/body", a), sent("/x/body", b)).unlike == ("the settings BODY_FILE",)
    assert compare(sent("/x/body", a), sent("/y/body", a)).unlike == ()
    assert compare(sent("/x/body", a), sent("/x/body", None)).unlike == ()  # of an earlier version, or forged
    assert compare(sent("/x/body", a), sent("/y/body", 5)).unlike == ("the settings BODY_FILE",)


def test_headers_are_compared_by_their_names() -> None:
    def sent(headers: object) -> Wave:
        return replace(wave(drawn(1)), environment={"headers": headers})

    both = sent(["Authorization", "X-Route"])
    assert compare(both, sent(["authorization"])).unlike == ("the headers X-Route",)
    assert compare(both, wave(drawn(1))).unlike == ("the headers Authorization, X-Route",)
    assert compare(both, both).unlike == ()
    assert compare(sent(5), sent([5, {}])).unlike == ()  # forged


def test_modules_of_another_content_are_a_condition_where_both_sides_know_them() -> None:
    def sent(modules: object) -> Wave:
        return replace(wave(drawn(1)), environment={OF_MODULES: modules})

    assert compare(sent({"shapes.py": "a"}), sent({"shapes.py": "b"})).unlike == ("the content of shapes.py",)
    assert compare(sent({"shapes.py": "a"}), sent({"shapes.py": "a"})).unlike == ()
    assert compare(sent({"shapes.py": "a"}), wave(drawn(1))).unlike == ()  # of an earlier version
    assert compare(sent({"shapes.py": "a"}), sent(5)).unlike == ()  # forged


def test_a_wave_stores_the_digests_of_the_files_that_its_settings_name(tmp_path: Path) -> None:
    (tmp_path / "body").write_bytes(b"{}")
    os.mkfifo(tmp_path / "pipe")
    files = {"BODY_FILE": "body", "PIPE_FILE": "pipe", "NO_FILE": "none", "A_FILE": "a\0b", "FOLDER_FILE": "."}
    settings = {name: str(tmp_path / text) for name, text in {**files, "BODY": "body"}.items()}
    plan = replace(wave(drawn(1)).plan, factory_settings=settings)
    of_body = hashlib.sha256(b"{}").hexdigest()
    assert describe_environment(plan, {})[OF_SETTINGS] == {"BODY_FILE": of_body}
