"""The orders to a keeper: as they are said, so they are understood, and nothing else is."""

import json
from typing import Any

import pytest

from inference_benchmarker.data.decoded import decoded, encoded
from server_capacity.provisioning.messages import ChangeOrder, EndpointOrder, Job, order_of
from server_capacity.provisioning.undo import Call, CommandLine, Processes

DELETE = Call("sagemaker", "delete_endpoint", {"EndpointName": "e"}, "eu-west-1")
MAKE = EndpointOrder("/f.py", {"n": 10**30, "deep": {"a": [1.5, None, True]}}, "run", {"MODEL": "m"})


def line(data: Any) -> Any:
    """As it arrives."""
    return json.loads(json.dumps(data))


@pytest.mark.parametrize("undo", [DELETE, CommandLine(("rm", "x")), Processes("0123456789abcdef")])
@pytest.mark.parametrize("account", [None, "123456789012"])
def test_a_change_arrives_as_it_was_ordered(undo: Call | CommandLine | Processes, account: str | None) -> None:
    order = ChangeOrder("scaling of e", undo, undo, account)
    assert order_of(line(order.to_json())) == order


def test_an_endpoint_is_ordered_and_handed_on_with_what_its_process_takes_over() -> None:
    assert order_of(line(encoded(MAKE))) == MAKE
    job = Job(MAKE, "/folder", 7, "0123456789abcdef")
    assert decoded(line(encoded(job)), Job) == job


@pytest.mark.parametrize(
    ("wrong", "place"),
    [({"settings": {"MODEL": 1}}, "settings"), ({"arguments": ["n"]}, "arguments"), ({"run": None}, "run")],
)
def test_an_order_of_another_shape_is_none(wrong: dict[str, Any], place: str) -> None:
    with pytest.raises(ValueError, match=place):
        order_of({**line(encoded(MAKE)), **wrong})
    with pytest.raises(ValueError, match="missing"):
        order_of({"factories_file": "/f.py"})
