"""What is varied, and the variants it makes."""

from __future__ import annotations

import pytest

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.words import secret_values
from server_capacity.results.types.axes import Axis, Variant, label_of, parse_axis, stored_variants, variants_of


@pytest.mark.parametrize(
    ("text", "axis"),
    [
        ("workers=1,2", Axis("argument", "workers", ("1", "2"))),
        (
            "instance_type = ml.m5.xlarge, ml.c5.xlarge",
            Axis("argument", "instance_type", ("ml.m5.xlarge", "ml.c5.xlarge")),
        ),
        ("env.OMP_NUM_THREADS=1,4", Axis("env", "OMP_NUM_THREADS", ("1", "4"))),
        ("payload.pattern=even,hot", Axis("payload", "pattern", ("even", "hot"))),
        ('sizes=[1,2],{"a":"x,y"},(3,4)', Axis("argument", "sizes", ("[1,2]", '{"a":"x,y"}', "(3,4)"))),
        ('name="a,b",c', Axis("argument", "name", ('"a,b"', "c"))),
        ("one=1", Axis("argument", "one", ("1",))),
        ("url=http://h/?a=b", Axis("argument", "url", ("http://h/?a=b",))),
    ],
)
def test_an_axis_is_a_name_and_its_values(text: str, axis: Axis) -> None:
    assert parse_axis("--vary", text) == axis


@pytest.mark.parametrize("text", ["", "workers", "=1", "a=", "a=1,", "a b=1", "env.=1", "1a=2", "a=1,1", "other.x=1"])
def test_what_is_no_axis_is_refused(text: str) -> None:
    with pytest.raises(BenchmarkError, match="--vary"):
        parse_axis("--vary", text)


def test_variants_of_one_endpoint_stand_together() -> None:
    texts = ("instance_type=a,b", "payload.pattern=even,hot", "env.N=1,2")
    made = variants_of([parse_axis("--vary", text) for text in texts])

    assert [len(each) for each in made] == [2, 2, 2, 2]
    assert made[0] == [
        Variant((("instance_type", "a"),), (("N", "1"),), (("pattern", "even"),)),
        Variant((("instance_type", "a"),), (("N", "1"),), (("pattern", "hot"),)),
    ]
    assert label_of(made[3][1].to_json()) == "b, N=2, pattern=hot"
    assert variants_of([]) == [[Variant()]]
    assert label_of({}) == "the endpoint"


def test_an_axis_stands_once_and_there_are_not_too_many_variants() -> None:
    with pytest.raises(BenchmarkError, match=r"--vary env\.N is given 2 times"):
        variants_of([parse_axis("--vary", "env.N=1"), parse_axis("--vary", "env.N=2")])
    with pytest.raises(BenchmarkError, match="10,000 variants"):
        variants_of([parse_axis("--vary", f"{name}={','.join(map(str, range(10)))}") for name in "abcd"])


def test_two_secrets_of_one_name_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compared by its name would else be taken for the same."""
    words = ("alpha11beta22", "gamma33delta44")
    monkeypatch.setattr(secret_values, "_environments", [{"FIRST_KEY": words[0], "SECOND_KEY": words[1]}])
    axes = [
        parse_axis("--vary", f"payload.tag={','.join(words)},plain"),
        parse_axis("--vary", f"payload.key={words[0]}"),
        parse_axis("--vary", f"env.URL=x://{words[1]}@a,x://{words[0]}@b"),
    ]
    made = stored_variants([each for each_endpoint in variants_of(axes) for each in each_endpoint])
    assert [tuple(each.values()) for each in made] == [
        (f"x://[hidden]@{server}", tag, "[hidden]")
        for server in "ab"
        for tag in ("[hidden] #1", "[hidden] #2", "plain")
    ]
