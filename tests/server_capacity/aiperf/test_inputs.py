"""What the arrivals of a wave send, as aiperf reads it."""

from __future__ import annotations

import json
from itertools import accumulate, count
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.engine.endpoint.factories_file import Endpoint
from inference_benchmarker.engine.endpoint.json_bodies import json_bodies
from inference_benchmarker.errors import BenchmarkError
from server_capacity.aiperf.inputs import made_requests, streams_differ, write_inputs

if TYPE_CHECKING:
    from pathlib import Path


def endpoint(payloads: list[Any] | None = None, **more: Any) -> Endpoint:
    return Endpoint(invoke=print, payloads=payloads, **more)


def test_a_list_is_reported_once_and_no_more_of_it_than_is_sent() -> None:
    bodies = [{"n": number} for number in range(3)]
    assert list(json_bodies(endpoint(bodies), 1, 10)) == bodies
    assert list(json_bodies(endpoint(bodies), 1, 2)) == bodies[:2]


def test_what_is_built_is_built_once_for_each_arrival() -> None:
    numbers = count()
    assert list(json_bodies(endpoint(build=lambda: {"n": next(numbers)}), 1, 4)) == [
        {"n": number} for number in range(4)
    ]
    assert next(numbers) == 4


def test_weights_draw_as_they_do_in_the_wave() -> None:
    drawn = endpoint([{"n": 0}, {"n": 1}], cumulative_weights=tuple(accumulate([1.0, 9.0])))
    got = [body["n"] for body in json_bodies(drawn, 7, 200)]
    assert got == [drawn.choose(7, index) for index in range(200)]
    assert 0 < got.count(0) < 60


@pytest.mark.parametrize("payload", ['{"a": "x\\n"}', b'{"a": "x\\n"}', {"a": "x\n"}])
def test_text_and_bytes_are_the_objects_they_spell(payload: Any, tmp_path: Path) -> None:
    path = tmp_path / "inputs.json"
    write_inputs(path, json_bodies(endpoint([payload, payload]), 1, 2))
    sessions = json.loads(path.read_text())["data"]
    assert [session["payloads"] for session in sessions] == [[{"a": "x\n"}]] * 2
    assert len({session["session_id"] for session in sessions}) == 2
    assert len(path.read_text().splitlines()) == 4
    assert made_requests(path).body == {"a": "x\n"}


@pytest.mark.parametrize("payload", [b"\xff\xd8", "plain text", [1], 7, {"a": object()}, {"a": float("nan")}])
def test_what_is_no_json_object_is_refused(payload: Any) -> None:
    with pytest.raises(BenchmarkError, match=r"payload 0 is .* --aiperf-args"):
        list(json_bodies(endpoint([payload]), 1, 1))


@pytest.mark.parametrize(
    ("streams", "differ"), [([True, True], False), ([None, False], False), ([True, None], True), ([False, True], True)]
)
def test_it_is_reported_whether_only_some_ask_for_a_stream(
    streams: list[bool | None], differ: bool, tmp_path: Path
) -> None:
    bodies = [{"n": 1} if stream is None else {"stream": stream} for stream in streams]
    write_inputs(tmp_path / "inputs.json", iter(bodies))
    assert streams_differ(made_requests(tmp_path / "inputs.json"), ours=True) is differ
