"""The pods that a user asks for: labels, taints, names."""

from __future__ import annotations

from decimal import Decimal

import pytest

from inference_benchmarker.engine.pods.pods import NodeLabel, Pods, Toleration
from inference_benchmarker.errors import BenchmarkError
from tests.case import case


def test_a_taint_is_read_as_kubectl_writes_it() -> None:
    rows = {
        "dedicated=load:NoSchedule": Toleration("dedicated", "load", "NoSchedule"),
        "nvidia.com/gpu:NoExecute": Toleration("nvidia.com/gpu", None, "NoExecute"),
        "spot=true": Toleration("spot", "true"),
        "spot": Toleration("spot"),
        "spot=:PreferNoSchedule": Toleration("spot", "", "PreferNoSchedule"),
    }
    for text, expected in rows.items():
        with case(text):
            assert Toleration.parse(text) == expected


@pytest.mark.parametrize("text", ["", "=x", "a b", "a:Never", "a:", "-a", "a/b/c", "a=b c", f"{'a' * 64}"])
def test_what_is_no_taint_is_refused(text: str) -> None:
    with pytest.raises(BenchmarkError, match="is no taint"):
        Toleration.parse(text)


def test_a_label_is_a_pair() -> None:
    assert NodeLabel.parse("kubernetes.io/arch=arm64") == NodeLabel("kubernetes.io/arch", "arm64")
    for text in ("arch", "=x", "a=b=c", "a=-", "a b=c"):
        with case(text), pytest.raises(BenchmarkError, match="is no label"):
            NodeLabel.parse(text)


def test_the_pods_that_send_have_the_indexes_after_the_primary() -> None:
    pods = Pods(3, job="load")
    assert (pods.primary, pods.senders) == ("load-0", ("load-1", "load-2", "load-3"))


def test_problems_name_the_flag() -> None:
    rows = {
        "--pods must be from 1 to 999, not 0": Pods(0),
        "--pods must be from 1 to 999, not 1,000": Pods(1_000),
        "--job-name Load:": Pods(1, job="Load"),
        "--job-name 1load:": Pods(1, job="1load"),
        "--job-name load-:": Pods(1, job="load-"),
        f"--job-name {'a' * 51}:": Pods(1, job="a" * 51),
        "--namespace a_b:": Pods(1, namespace="a_b"),
        "--pod-image my image:": Pods(1, image="my image"),
        "--image-pull-secret -x:": Pods(1, image_pull_secret="-x"),
        "--service-account A:": Pods(1, service_account="A"),
        "--deadline must be 1 second or more, not 0": Pods(1, deadline_s=Decimal(0)),
    }
    for expected, pods in rows.items():
        with case(expected):
            (problem,) = pods.problems()
            assert problem.text.startswith(expected)
    assert list(Pods(999, job="a" * 50, namespace="0", image="r:5/x@sha256:0", deadline_s=Decimal(1)).problems()) == []
