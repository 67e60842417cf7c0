from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.verdict.server.known_metrics import KNOWN, hint, unpublished
from server_capacity.metrics.cloudwatch.block import CloudWatchBlock
from server_capacity.metrics.config import STREAMS, load_config
from tests.conftest import ROOT
from tests.mentions import mentions

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = sorted((ROOT / "server_capacity/server_metrics_configs").glob("*.json"))


def block(**changes: Any) -> dict[str, Any]:
    """A correct block with changes; a value of ... leaves its key out."""
    whole = {
        "stream": "cloudwatch",
        "Namespace": "/aws/sagemaker/Endpoints",
        "Dimensions": [{"Name": "EndpointName", "Value": "e"}, {"Name": "VariantName", "Value": "AllTraffic"}],
        "Period": 60,
        "Lag": 30,
        "Metrics": ["CPUUtilization"],
        "Statistics": [["Average", "Maximum"]],
    }
    return {key: value for key, value in {**whole, **changes}.items() if value is not ...}


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "metrics.json"
    path.write_text(text, encoding="utf-8")
    return path


def complaint(tmp_path: Path, data: Any) -> str:
    with pytest.raises(BenchmarkError) as caught:
        load_config(write(tmp_path, data if isinstance(data, str) else json.dumps(data)))
    return caught.value.message


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_loads_and_asks_for_documented_metrics(path: Path) -> None:
    for each in load_config(path):
        if not isinstance(each, CloudWatchBlock):
            continue
        names = [name for name, _ in each.dimensions]
        for name, statistics in each.metrics:
            assert (each.namespace, name) in KNOWN
            assert unpublished(each.namespace, name, statistics) == ""
            assert "add the dimension" not in hint(each.namespace, name, names, statistics)


def test_the_docs_name_every_example() -> None:
    page = (ROOT / "docs" / "how-to" / "server-metrics.md").read_text(encoding="utf-8")
    listed = page.partition("`server_capacity/server_metrics_configs/`")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+\.json)`", listed)) == {path.name for path in EXAMPLES}


def test_a_block_with_its_defaults(tmp_path: Path) -> None:
    (loaded,) = load_config(write(tmp_path, json.dumps([block(Period=..., Lag=..., Dimensions=...)])))
    assert loaded == CloudWatchBlock(
        "/aws/sagemaker/Endpoints", (), 60, 0.0, (("CPUUtilization", ("Average", "Maximum")),)
    )


def test_a_block_may_say_what_its_endpoint_runs_on(tmp_path: Path) -> None:
    (loaded,) = load_config(write(tmp_path, json.dumps([block(InstanceType="ml.g5.12xlarge")])))
    assert isinstance(loaded, CloudWatchBlock)
    assert loaded.instance_type == "ml.g5.12xlarge"


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    assert load_config(write(tmp_path, "\ufeff" + json.dumps([block()])))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"stream": ...}, 'block 1: "stream" is missing; streams are cloudwatch, prometheus'),
        ({"stream": "cloudwach"}, "Did you mean 'cloudwatch'?"),
        ({"stream": ["cloudwatch"]}, "\"stream\" is ['cloudwatch']"),
        ({"Namespace": ...}, '"Namespace" is missing'),
        ({"Namespace": 7}, '"Namespace" must be a string'),
        ({"Dimensions": {"EndpointName": "e"}}, '"Dimensions" must be a list of {"Name": ..., "Value": ...}'),
        ({"Dimensions": [{"Name": "EndpointName"}]}, '"Dimensions" entry 1 must have "Name" and "Value"'),
        ({"Dimensions": [{"Name": "EndpointName", "Value": 1}]}, '"Dimensions" entry 1: "Name" and "Value" must be'),
        ({"Dimensions": [{"Name": "A", "Value": "1"}] * 2}, "\"Dimensions\" has 'A' 2 times"),
        ({"Dimensions": [{"Name": f"D{n}", "Value": "v"} for n in range(31)]}, "has 31 entries; CloudWatch takes 30"),
        ({"Period": 7}, '"Period" must be 1, 5, 10, 20, 30 or a multiple of 60 up to 86400 seconds, not 7'),
        ({"Period": 90}, "not 90"),
        ({"Period": 86_460}, "not 86460"),
        ({"Period": "60"}, "not '60'"),
        ({"Period": True}, "not True"),
        ({"Lag": -1}, '"Lag" must be a number of seconds, 0 or more, not -1'),
        ({"Lag": "30"}, "\"Lag\" must be a number of seconds, 0 or more, not '30'"),
        ({"Wait": -1}, '"Wait" must be a number of seconds, 0 or more, not -1'),
        ({"Lag": float("nan")}, '"Lag" must be'),
        ({"Metrics": ...}, '"Metrics" is missing'),
        ({"Metrics": "CPUUtilization"}, '"Metrics" must be a list'),
        ({"Metrics": [1]}, '"Metrics" entry 1 must be the name of a metric'),
        ({"Metrics": ["A", "A"], "Statistics": [["Sum"], ["Sum"]]}, "\"Metrics\" has 'A' 2 times"),
        ({"Statistics": ...}, '"Statistics" is missing'),
        (
            {"Statistics": ["Average"]},
            '"Statistics" entry 1 must be a list such as ["Average", "p99"], not \'Average\'',
        ),
        ({"Statistics": [["Averag"]]}, "CloudWatch has no statistic 'Averag'. Did you mean 'Average'?"),
        ({"Statistics": [["p101"]]}, "CloudWatch has no statistic 'p101'. Expected Average,"),
        ({"Statistics": [[None]]}, "CloudWatch has no statistic None"),
        ({"Metrics": ["A", "B"]}, '"Metrics" has 2 entries and "Statistics" 1; they are paired by position'),
        ({"InstanceType": "m5.xlarge"}, '"InstanceType" must be one of SageMaker\'s types such as "ml.m5.xlarge"'),
        ({"InstanceType": "ml.m5.xlrage"}, "not 'ml.m5.xlrage'"),
        ({"InstanceType": 4}, "not 4"),
        ({"InstanceType": "ml.m5.xlarge", "Namespace": "AWS/ECS"}, 'belongs to blocks of "/aws/sagemaker/Endpoints"'),
        ({"InstanceTyp": "ml.m5.xlarge"}, "Did you mean 'InstanceType'?"),
        ({"Dimension": []}, "unknown key \"Dimension\". Did you mean 'Dimensions'?"),
    ],
)
def test_what_is_wrong_is_named_with_block_and_key(tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    message = complaint(tmp_path, [block(**changes)])
    assert expected in message
    assert "metrics.json: block 1: " in message
    assert len(message.splitlines()) == 1


def test_everything_wrong_is_said_at_once(tmp_path: Path) -> None:
    message = complaint(tmp_path, [block(Period=7, Lag=-1), "no block", block(stream="x"), block(Namespace=...)])
    assert [line.split(": ", 2)[1] for line in message.splitlines()] == [
        "block 1",
        "block 1",
        "block 2",
        "block 3",
        "block 4",
    ]


def test_a_metric_asked_in_two_blocks(tmp_path: Path) -> None:
    reordered = list(reversed(block()["Dimensions"]))
    message = complaint(tmp_path, [block(), block(Dimensions=reordered)])
    assert "block 2: \"Metrics\" asks for 'CPUUtilization' as block 1 does" in message
    other = [{"Name": "EndpointName", "Value": "other"}]
    assert len(load_config(write(tmp_path, json.dumps([block(), block(Dimensions=other)])))) == 2


def test_a_file_that_cannot_be_read_or_is_no_list(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match=r"nowhere\.json: cannot be read"):
        load_config(tmp_path / "nowhere.json")
    with pytest.raises(BenchmarkError, match="cannot be read"):
        load_config(tmp_path)
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BenchmarkError, match="not UTF-8 text"):
        load_config(tmp_path / "binary.json")
    assert "must be a JSON list of blocks, not an object" in complaint(tmp_path, {"stream": "cloudwatch"})
    assert "not an empty list" in complaint(tmp_path, [])
    assert "nested too deeply" in complaint(tmp_path, "[" * 100_000)


def test_the_line_of_a_slip_is_named(tmp_path: Path) -> None:
    assert "metrics.json, line 3, column 1: not valid JSON" in complaint(
        tmp_path, '[\n  {"stream": "cloudwatch"\n"Period": 1}]'
    )


def test_a_key_given_twice_is_not_lost(tmp_path: Path) -> None:
    text = json.dumps([block()]).replace('"Period": 60', '"Period": 60, "Period": 10')
    assert '"Period" appears twice' in complaint(tmp_path, text)


def test_every_stream_is_a_module_of_its_own() -> None:
    assert all(module.startswith("server_capacity.") for module in STREAMS.values())


@pytest.mark.parametrize(
    ("namespace", "name", "dimensions", "statistics", "expected"),
    [
        (
            "/aws/sagemaker/Endpoints",
            "ModelLatency",
            ["EndpointName", "VariantName"],
            ["Average"],
            "lives in AWS/SageMaker",
        ),
        (
            "AWS/SageMaker",
            "CPUUtilization",
            ["EndpointName", "VariantName"],
            ["Average"],
            "lives in /aws/sagemaker/End",
        ),
        ("aws/sagemaker/Endpoints", "CPUUtilization", ["EndpointName"], ["Average"], "'/aws/sagemaker/Endpoints'?"),
        (
            "AWS/SageMaker",
            "ModelLatency",
            ["EndpointName"],
            ["Average"],
            "add the dimension VariantName (often AllTraffic",
        ),
        ("AWS/SageMaker", "ModelLatencies", ["EndpointName"], ["Average"], "Did you mean 'ModelLatency'?"),
        ("AWS/SageMaker", "Invocations", ["EndpointName", "VariantName"], ["p99"], "documents Sum and SampleCount"),
        ("AWS/SageMaker", "OverheadLatency", ["EndpointName", "VariantName"], ["p99"], "not p99"),
        (
            "/aws/sagemaker/Endpoints",
            "GPUUtilization",
            ["EndpointName", "VariantName"],
            ["Average"],
            "instances with a GPU",
        ),
        ("AWS/SageMaker", "ModelCacheHit", ["EndpointName", "VariantName"], ["Average"], "only multi-model endpoints"),
        (
            "AWS/SageMaker",
            "Invocations",
            ["EndpointName", "VariantName"],
            ["Sum"],
            "do these values of EndpointName and VariantName exist",
        ),
    ],
)
def test_hints(namespace: str, name: str, dimensions: list[str], statistics: list[str], expected: str) -> None:
    assert expected in hint(namespace, name, dimensions, statistics)


def test_a_number_that_nobody_means_is_refused_where_it_is_read(tmp_path: Path) -> None:
    assert mentions(complaint(tmp_path, [block(Period=10**400)]), "metrics.json", "401 digits")
