"""A wave under which the embedded endpoint scales: the report says what the endpoint's own services say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.facts.instances import gathered
from inference_benchmarker.wave.wave import Wave
from tests.boto3_runtime import client
from tests.fake_cloudwatch import cloudwatch_block

if TYPE_CHECKING:
    from pathlib import Path

    from inference_benchmarker.embedded.running import RunningEndpoint
    from tests.bench import Bench

VARIANT = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": "endpoint/demo/variant/AllTraffic",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}
TRACKED = {
    "TargetValue": 600.0,  # ten a second
    "PredefinedMetricSpecification": {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"},
}
STAGES = "5:300ms, busy=40:1700ms"


def scaled(endpoint: RunningEndpoint) -> str:
    """Let the endpoint scale from 1 to 3 instances; the name of the alarm."""
    scaling = client(endpoint, "application-autoscaling")
    scaling.register_scalable_target(**VARIANT, MinCapacity=1, MaxCapacity=3)
    put = scaling.put_scaling_policy(
        **VARIANT,
        PolicyName="ten-a-second",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration=TRACKED,
    )
    return next(str(alarm["AlarmName"]) for alarm in put["Alarms"] if "AlarmHigh" in alarm["AlarmName"])


def configured(folder: Path) -> str:
    block = cloudwatch_block("AWS/SageMaker", {"Invocations": ["Sum"]}, period=1, lag=0)
    (folder / "config.json").write_text(json.dumps([block]))
    return "config.json"


@pytest.mark.process
def test_a_wave_tells_when_instances_were_asked_for_and_when_they_served(bench: Bench) -> None:
    """A minute lasts 100 ms, an instance takes five of them to serve."""
    folder = bench.folder()
    with bench.endpoint(service_s=0.005, time_factor=600, instance_start_s=300, publish_interval_s=1) as endpoint:
        alarm = scaled(endpoint)
        wave = bench.run(
            *("--stages", STAGES, "--endpoint-config", configured(folder)),
            target=endpoint,
            environment=endpoint.aws_environment,
            folder=folder,
        )
        scaling, cloudwatch = client(endpoint, "application-autoscaling"), client(endpoint, "cloudwatch")
        activities = scaling.describe_scaling_activities(**VARIANT)["ScalingActivities"]
        history = cloudwatch.describe_alarm_history(AlarmName=alarm, HistoryItemType="StateUpdate")
        log = endpoint.arrivals()
    start = wave.summary["window"]["start_unix_ns"] / 1e9
    reported = wave.summary["instances"]
    (followed,) = reported["followed"]
    check_changes(followed["changes"], activities, start)
    fired = [at["Timestamp"].timestamp() - start for at in history["AlarmHistoryItems"] if "to ALARM" in str(at)]
    # on a busy machine the first change that is seen may be the second one
    assert any(followed["changes"][0]["alarm_s"] == pytest.approx(each, abs=2e-3) for each in fired)
    assert followed["changes"][0]["load_rose_s"] == 0.3
    assert followed["steps"][0]["current"] == 1
    kinds = [event["kind"] for event in followed["events"]]
    assert kinds[:2] == ["load", "load"]
    assert {"alarm", "asked", "served"} <= set(kinds)
    failed = sum(status != 200 for status in log["status"])
    assert (reported["limits_missed"]["failed"], failed) == (0, 0)
    assert "   Instances:        1 -> " in wave.out
    assert "instances" in {remark["code"] for remark in wave.summary["diagnosis"]}
    (stored,) = gathered(map(json.loads, (wave.folder / "instances.jsonl").read_text().splitlines()))
    assert len(stored.counts) >= 3
    again = Wave.load(wave.folder)
    assert again.to_json()["instances"] == reported
    assert again.texts()[1].split("\n\n")[0] in wave.out, "without asking anybody"


def check_changes(changes: list[dict[str, Any]], activities: list[dict[str, Any]], start: float) -> None:
    """Each change is one that Application Auto Scaling made, and was served no sooner than it says."""
    made = {float(each["Description"].rstrip(".").rpartition(" ")[2]): each for each in activities}
    assert changes
    for change in changes:
        activity = made[change["to"]]
        assert change["asked_s"] == pytest.approx(activity["StartTime"].timestamp() - start, abs=2e-3)
        if change["served_s"] is not None:
            assert change["served_s"] >= activity["EndTime"].timestamp() - start - 2e-3
