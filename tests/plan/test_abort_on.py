"""Conditions that end a wave: what users write, what is refused with its reason, and the plan that keeps them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.abort_on import MOST_S, AbortOn
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.problems import problems_of_values
from tests.waves import closed_plan, open_plan


@pytest.mark.parametrize(
    ("text", "condition", "over_s"),
    [
        ("success<50%@10s", ("success", "success", "<", 0.5), 10),
        (" p99 > 2s @ 30s ", ("default", "p99", ">", 2.0), 30),
        ("p99>2s", ("default", "p99", ">", 2.0), 10),
        ("latency.mean>=200ms@1m", ("latency", "mean", ">=", 0.2), 60),
        ("ttft.p90>1s@5", ("ttft", "p90", ">", 1.0), 5),
        ("lag.max>50ms@2000ms", ("lag", "max", ">", 0.05), 2),
        ("success<=0.25@1s", ("success", "success", "<=", 0.25), 1),
    ],
)
def test_a_condition_is_read(text: str, condition: tuple[str, str, str, float], over_s: int) -> None:
    read = AbortOn.parse(text)
    found = read.condition
    assert (found.metric, found.stat, found.op, found.limit) == condition
    assert read.over_s == over_s
    assert AbortOn.parse(read.text) == read


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", ""),
        ("p99", ""),
        ("errors>5", ""),
        ("p99>2@10s", "a time needs its unit"),
        ("success<50ms", "a share"),
        ("success<150%@10s", "a share"),
        ("p99>2s@", "whole seconds"),
        ("p99>2s@0s", "whole seconds"),
        ("p99>2s@61s", "whole seconds"),
        ("p99>2s@2m", "whole seconds"),
        ("p99>2s@1500ms", "whole seconds"),
        ("p99>2s@1.5s", "whole seconds"),
        ("p99>2s@10s@10s", "whole seconds"),
        ("p99>2s@-1s", "whole seconds"),
        ("p99>2s@٣s", "whole seconds"),
        ("p99>2s@99999m", "whole seconds"),
        ("p99<2s@10s", "a healthy wave"),
        ("success>=50%", "a healthy wave"),
        ("rate<50%", "rate is known only when the wave is over"),
        ("goodput<50%@5s", "goodput is known only when the wave is over"),
        ("metric.cache_hit.mean<0.1", "a metric of your own is known only when the wave is over"),
        ("spike:p99>2s@10s", "whatever their stage"),
        ("server.CPUUtilization>90%@10s", ""),
        ("p99>２s", ""),
        ("p99>2s; rm -rf /@10s", ""),
    ],
)
def test_what_is_no_condition_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(BenchmarkError) as error:
        AbortOn.parse(text)
    assert reason in str(error.value)
    assert repr(text) in str(error.value)
    assert "success<50%@10s" in str(error.value), "what to write is shown"


@given(
    st.text(max_size=40)
    | st.from_regex(r"[a-z0-9.]{1,12}[<>=]{1,2}[0-9]{1,9}(s|ms|%)?(@[0-9]{1,6}m?s?)?", fullmatch=True)
)
def test_any_text_is_a_condition_or_one_error(text: str) -> None:
    try:
        read = AbortOn.parse(text)
    except BenchmarkError:
        return
    assert 1 <= read.over_s <= MOST_S
    assert AbortOn.parse(read.text) == read


def test_a_plan_keeps_its_conditions_and_older_plans_have_none() -> None:
    plan = open_plan(abort_on=(AbortOn.parse("success<50%@5s"), AbortOn.parse("p99>2s")), abort=False)
    data = json.loads(json.dumps(plan.to_json()))
    assert data["abort_on"] == ["success<50%@5s", "p99>2s@10s"]
    assert WavePlan.from_json(data) == plan
    del data["abort_on"], data["abort"]
    older = WavePlan.from_json(data)
    assert (older.abort_on, older.abort) == ((), True)


def test_a_closed_loop_has_no_response_time_to_judge() -> None:
    conditions = tuple(map(AbortOn.parse, ("response_time.p99>2s", "latency.p99>2s", "p99>2s")))
    (problem,) = problems_of_values(closed_plan(abort_on=conditions))
    assert problem.text.startswith("--abort-on response_time.p99>2s@10s: a closed loop has no response time")
    assert not list(problems_of_values(open_plan(abort_on=conditions)))
