"""The plan: it knows every conflict, says all of them at once, and survives a round trip through JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.cli.core.flags import Flag, in_seconds, parse_decimal, parse_int, read_flags
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.load import Bounds, ClosedLoop, OpenLoop
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.problems import check_plan, problems_of
from inference_benchmarker.plan.retries import Retries
from inference_benchmarker.plan.slo import RequestLimit, Slo
from inference_benchmarker.plan.stage import Stage
from inference_benchmarker.words.redact import HIDDEN
from inference_benchmarker.words.units import NS

HERE = Path(__file__)
OPEN = WavePlan(OpenLoop(Decimal(10)), Bounds(Decimal(5)), factories_file=HERE)
CLOSED = replace(OPEN, load=ClosedLoop(4))

texts = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=20)
seconds = st.decimals(min_value="0.001", max_value="100000", places=3)
rates = st.decimals("0", "1000000", places=6)
slos = st.lists(st.sampled_from(["p99<200ms", "success>=99.9%", "latency.p99.9<=1.5s", "ttft.median<10us"]), max_size=3)
limits = st.lists(st.sampled_from(["ttft<1s", "itl<=50.5ms", "e2e<2s", "tpot<900us"]), max_size=3)
stages = st.builds(Stage, rates, rates, seconds, st.sampled_from(["", "spike", "x_1-a"]))
plans = st.builds(
    WavePlan,
    load=st.one_of(
        st.builds(OpenLoop, st.decimals("0.000001", "1000000", places=6), st.sampled_from(("constant", "poisson"))),
        st.builds(ClosedLoop, st.integers(1, 10**6)),
        st.lists(stages, min_size=1, max_size=4).map(lambda found: OpenLoop(stages=tuple(found))),
    ),
    bounds=st.builds(Bounds, st.none() | seconds, st.none() | st.integers(1, 10**9)),
    factories_file=st.none() | st.just(Path("/a folder/f.py")),
    endpoint_name=st.none() | texts,
    url=st.none() | st.just("http://h:1/x"),
    workers=st.integers(1, 1000),
    warmup_s=seconds,
    drain_timeout_s=seconds,
    request_timeout_s=st.none() | seconds,
    max_in_flight=st.none() | st.integers(1, 10**6),
    max_answer_size=st.integers(1, 1 << 40),
    seed=st.none() | st.integers(0, 2**63 - 1),
    success_threshold=st.floats(0, 1),
    slos=slos.map(lambda texts: tuple(map(Slo.parse, texts))),
    goodput=limits.map(lambda texts: tuple(map(RequestLimit.parse, texts))),
    port=st.integers(1, 65535),
    ui=st.booleans(),
    first_payload=st.integers(0, 10**9),
    payload_arguments=st.none()
    | st.dictionaries(texts, st.integers() | texts | st.booleans() | st.lists(texts), max_size=3),
    name=st.none() | texts,
)


@given(plans)
def test_json_round_trip_changes_nothing(plan: WavePlan) -> None:
    assert WavePlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def reported(plan: WavePlan) -> list[str]:
    """What a user reads."""
    return [problem.text for problem in problems_of(plan)]


def test_a_good_plan_has_no_problems() -> None:
    assert problems_of(OPEN) == []
    assert problems_of(CLOSED) == []
    check_plan(OPEN)


HUGE = Decimal("1e999999")
BAD_DECIMALS = [Decimal(text) for text in ("NaN", "sNaN", "Infinity", "-Infinity", "-1", "-0.001", "1e999999")]


@pytest.mark.parametrize("rate", [*BAD_DECIMALS, Decimal(0), Decimal("1000000.1")])
def test_a_rate_must_be_positive_and_possible(rate: Decimal) -> None:
    (problem,) = reported(replace(OPEN, load=OpenLoop(rate)))
    assert problem == f"--client-rps must be above 0 and at most 1,000,000 requests/s, not {rate}."


def test_a_rate_has_a_least_value() -> None:
    (problem,) = reported(replace(OPEN, load=OpenLoop(Decimal("9e-7"))))
    assert "at least 0.000001" in problem


@pytest.mark.parametrize("value", [*BAD_DECIMALS, Decimal(0), Decimal("2592000.1")])
@pytest.mark.parametrize("flag", ["--obs-time", "--request-timeout"])
def test_lengths_must_be_positive_and_at_most_a_month(flag: str, value: Decimal) -> None:
    plan = replace(OPEN, bounds=Bounds(value)) if flag == "--obs-time" else replace(OPEN, request_timeout_s=value)
    assert reported(plan) == [f"{flag} must be from 0.001 to 2,592,000 seconds, not {value}."]


@pytest.mark.parametrize("value", [*BAD_DECIMALS, Decimal("2592000.1")])
@pytest.mark.parametrize(("flag", "field"), [("--warmup", "warmup_s"), ("--drain-timeout", "drain_timeout_s")])
def test_waits_may_be_zero_but_not_negative(flag: str, field: str, value: Decimal) -> None:
    zero: dict[str, Any] = {field: Decimal(0)}
    wrong: dict[str, Any] = {field: value}
    assert problems_of(replace(OPEN, **zero)) == []
    assert reported(replace(OPEN, **wrong)) == [f"{flag} must be from 0 to 2,592,000 seconds, not {value}."]


FROM_RECORDS = "is computed from the record of each request: leave it out, or --records none."
REGULAR: Any = "regular"
CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"bounds": Bounds()}, "A wave needs an end: give --obs-time SECONDS, --num-requests N, or both."),
    ({"bounds": Bounds(None, 0)}, "--num-requests must be from 1 to 1,000,000,000, not 0."),
    ({"bounds": Bounds(None, -5)}, "--num-requests must be from 1 to 1,000,000,000, not -5."),
    ({"bounds": Bounds(None, 10**9 + 1)}, "--num-requests must be from 1 to 1,000,000,000, not 1000000001."),
    (
        {"bounds": Bounds(None, 10**9), "load": OpenLoop(Decimal("0.5"))},
        "--num-requests 1000000000 at 0.5 requests/s would take longer than 2,592,000 seconds: "
        "give a higher --client-rps, fewer requests, or an --obs-time.",
    ),
    ({"load": OpenLoop(Decimal(1), REGULAR)}, "--arrivals must be constant or poisson, not 'regular'."),
    ({"load": ClosedLoop(0)}, "--concurrency must be from 1 to 1,000,000, not 0."),
    ({"load": ClosedLoop(10**6 + 1)}, "--concurrency must be from 1 to 1,000,000, not 1000001."),
    (
        {"factories_file": None},
        "No endpoint: give its URL, --factories-file FILE or --locust-file FILE (or --demo to try the tool).",
    ),
    ({"locust_file": HERE}, "Give either --factories-file or --locust-file, not both."),
    ({"factories_file": Path("/nowhere/f.py")}, "--factories-file /nowhere/f.py: there is no such file."),
    ({"factories_file": HERE.parent}, f"--factories-file {HERE.parent}: this is a folder; give the file in it."),
    ({"factories_file": Path("f" * 5000)}, f"--factories-file {'f' * 5000}: there is no such file."),
    (
        {"factories_file": None, "locust_file": Path("/nowhere/l.py")},
        "--locust-file /nowhere/l.py: there is no such file.",
    ),
    (
        {"factories_file": None, "locust_file": HERE, "endpoint_name": "e"},
        "--endpoint-name goes to invoke_factory; with --locust-file use --url.",
    ),
    (
        {"factories_file": None, "locust_file": HERE, "payload_arguments": {"pattern": "hot"}},
        "payload_arguments go to payload_factory, and a --locust-file has none.",
    ),
    ({"endpoint_name": " "}, "--endpoint-name must not be empty."),
    (
        {"url": "http://h"},
        "--url is the host of a --locust-file; a factories file names its endpoint itself.",
    ),
    (
        {"factories_file": None, "locust_file": HERE, "url": "h:80"},
        "--url must start with http:// or https://, not 'h:80'.",
    ),
    ({"workers": 0}, "--workers must be from 1 to 1,000, not 0."),
    ({"workers": -1}, "--workers must be from 1 to 1,000, not -1."),
    ({"workers": 1001}, "--workers must be from 1 to 1,000, not 1001."),
    ({"port": 0}, "--port must be from 1 to 65535, not 0."),
    ({"port": 65536}, "--port must be from 1 to 65535, not 65536."),
    ({"max_in_flight": 0}, "--max-in-flight must be at least one per worker (1), not 0."),
    ({"max_in_flight": 2, "workers": 3}, "--max-in-flight must be at least one per worker (3), not 2."),
    (
        {"load": ClosedLoop(2), "workers": 3},
        "--concurrency 2 cannot be split over 3 workers: use --workers 2 or fewer.",
    ),
    (
        {"load": ClosedLoop(2), "max_in_flight": 5},
        "--max-in-flight caps an open loop; with --concurrency the cap is the concurrency.",
    ),
    ({"seed": -1}, "--seed must be a whole number from 0 to 2^63 - 1, not -1."),
    ({"seed": 2**63}, f"--seed must be a whole number from 0 to 2^63 - 1, not {2**63}."),
    ({"success_threshold": -0.1}, "--success-threshold must be a share from 0 to 1, not -0.1."),
    ({"success_threshold": 95.0}, "--success-threshold must be a share from 0 to 1, not 95.0."),
    ({"success_threshold": float("nan")}, "--success-threshold must be a share from 0 to 1, not nan."),
    (
        {"load": ClosedLoop(1), "slos": (Slo.parse("rate>=0.9"),)},
        "--slo rate>=0.9: a closed loop has no target rate; limit latency instead.",
    ),
    (
        {"load": ClosedLoop(1), "slos": (Slo.parse("response_time.p99<1s"),)},
        "--slo response_time.p99<1s: a closed loop has no response time; limit latency instead.",
    ),
    (
        {"load": ClosedLoop(1), "goodput": (RequestLimit.parse("response_time<1s"),)},
        "--goodput response_time<1s: a closed loop has no response time; limit latency instead.",
    ),
    (
        {"slos": (Slo.parse("goodput>=0.9"),)},
        "--slo goodput>=0.9: say what a good request is, e.g. --goodput 'ttft<1s,itl<50ms'.",
    ),
    ({"records": "some"}, "--records must be all or none, not 'some'."),
    (
        {"records": "none", "retries": Retries(retries=1)},
        f"--client-retries: the result of each user {FROM_RECORDS}",
    ),
    ({"records": "none", "goodput": (RequestLimit.parse("ttft<1s"),)}, f"--goodput {FROM_RECORDS}"),
    ({"records": "none", "slos": (Slo.parse("tpot.p99<1s"),)}, f"--slo tpot.p99<1s: TPOT {FROM_RECORDS}"),
]


@pytest.mark.parametrize(("changes", "problem"), CHANGES, ids=[problem[:50] for _, problem in CHANGES])
def test_each_problem_is_one_sentence(changes: dict[str, Any], problem: str) -> None:
    assert reported(replace(OPEN, **changes)) == [problem]


def test_all_problems_come_at_once() -> None:
    plan = replace(OPEN, load=OpenLoop(Decimal(0)), bounds=Bounds(Decimal(-1), 0), workers=0, port=0, seed=-1)
    with pytest.raises(BenchmarkError) as raised:
        check_plan(plan)
    flags = [line.split()[0] for line in str(raised.value).splitlines()]
    assert flags == ["--client-rps", "--obs-time", "--num-requests", "--workers", "--port", "--seed"]


def test_numbers_and_paths_of_a_notebook_are_taken_as_they_print() -> None:
    plan = WavePlan(
        OpenLoop(7.3),  # type: ignore[arg-type]
        Bounds(2),  # type: ignore[arg-type]
        factories_file=str(HERE),  # type: ignore[arg-type]
        warmup_s=0.1,  # type: ignore[arg-type]
    )
    assert problems_of(plan) == []
    assert plan == WavePlan(OpenLoop(Decimal("7.3")), Bounds(Decimal(2)), factories_file=HERE, warmup_s=Decimal("0.1"))


def test_the_seed_of_what_a_url_sends_follows_the_waves_and_one_of_its_own_stays() -> None:
    plan = WavePlan(OpenLoop(Decimal(1)), Bounds(num_requests=1), seed=7, factory_settings={"SEED": "7", "URL": "u"})
    again = plan.with_seed(8)
    assert (again.seed, again.factory_settings) == (8, {"SEED": "8", "URL": "u"})
    for settings in ({"SEED": "6"}, {"URL": "u"}, {}):
        assert replace(plan, factory_settings=settings).with_seed(8).factory_settings == settings
    assert replace(plan, seed=None).with_seed(8).factory_settings["SEED"] == "7"


def test_seconds_become_exact_nanoseconds() -> None:
    plan = replace(OPEN, bounds=Bounds(Decimal("0.1")), warmup_s=Decimal("1.000000001"), drain_timeout_s=Decimal("2.5"))
    assert (plan.bounds.duration_ns, plan.warmup_ns, plan.drain_ns) == (NS // 10, NS + 1, 5 * NS // 2)
    assert Bounds().duration_ns is None
    assert (OPEN.target_rate, CLOSED.target_rate) == (10.0, None)


def test_how_long_a_wave_lasts_is_the_first_of_its_ends() -> None:
    both = Bounds(Decimal(5), 20)
    assert replace(OPEN, bounds=both).expected_s == 2
    assert replace(OPEN, bounds=Bounds(Decimal(5), 500)).expected_s == 5
    assert replace(OPEN, bounds=Bounds(None, 500)).expected_s == 50
    assert replace(CLOSED, bounds=both).expected_s == 5
    assert replace(CLOSED, bounds=Bounds(None, 20)).expected_s is None


def test_public_json_holds_no_password() -> None:
    plan = replace(
        OPEN,
        factories_file=None,
        locust_file=HERE,
        url="https://user:hunter2pass@host/path?api_key=verysecret1",
        name="run with token=abcdef123456",
        endpoint_name="x-sk-abcdefghijklmnop1234",
    )
    text = json.dumps(plan.public_json())
    for secret in ("hunter2pass", "verysecret1", "abcdef123456", "abcdefghijklmnop1234"):
        assert secret in json.dumps(plan.to_json())
        assert secret not in text
    assert HIDDEN in text
    assert WavePlan.from_json(plan.public_json()).load == plan.load


def test_a_problem_holds_no_password() -> None:
    plan = replace(OPEN, factories_file=None, locust_file=HERE, url="ftp://user:hunter2pass@host")
    assert "hunter2pass" not in str(problems_of(plan))


GOOD_SLOS = [
    ("p99<200ms", "default", "p99", "<", 0.2),
    ("p50 <= 50us", "default", "p50", "<=", 0.00005),
    ("latency.p95<=0.5s", "latency", "p95", "<=", 0.5),
    ("ttft.p90<1s", "ttft", "p90", "<", 1.0),
    ("itl.p99<50ms", "itl", "p99", "<", 0.05),
    ("tpot.mean<7ms", "tpot", "mean", "<", 0.007),
    ("lag.max<5ms", "lag", "max", "<", 0.005),
    ("response_time.p99.9<1.1s", "response_time", "p99.9", "<", 1.1),
    ("p99.999<2s", "default", "p99.999", "<", 2.0),
    ("median<0.3ms", "default", "p50", "<", 0.0003),
    ("min>1ms", "default", "min", ">", 0.001),
    ("success>=0.99", "success", "success", ">=", 0.99),
    ("success>=99.9%", "success", "success", ">=", 0.999),
    ("success >= 100 %", "success", "success", ">=", 1.0),
    ("rate>=0.99", "rate", "rate", ">=", 0.99),
    ("rate>=99%", "rate", "rate", ">=", 0.99),
    ("goodput>=95%", "goodput", "goodput", ">=", 0.95),
    ("metric.cache_hit.mean>0.8", "metric.cache_hit", "mean", ">", 0.8),
    (" metric.p99.p99.9 <= -1.5e-3 ", "metric.p99", "p99.9", "<=", -0.0015),
    ("metric.mean.median<.5", "metric.mean", "p50", "<", 0.5),
]


@pytest.mark.parametrize(("text", "metric", "stat", "op", "limit"), GOOD_SLOS)
def test_a_limit_is_read_exactly(text: str, metric: str, stat: str, op: str, limit: float) -> None:
    slo = Slo.parse(text)
    assert (slo.metric, slo.stat, slo.op) == (metric, stat, op)
    assert slo.limit == limit  # no approximation: a value that lies on its limit must meet <= it
    assert Slo.parse(slo.expression) == slo


BAD_SLOS = [
    "",
    "p99",
    "p99<",
    "<200ms",
    "p99<200",
    "p99<0.2",
    "p99<20%",
    "p99=200ms",
    "p99==200ms",
    "p99<-1ms",
    "p99<1e3ms",
    "p99<nan",
    "p99<infs",
    "p0<1s",
    "p00<1s",
    "p0.0<1s",
    "p100<1s",
    "p101<1s",
    "p99.9999<1s",
    "p<1s",
    "P99<1s",
    "avg<1s",
    "speed.p99<1s",
    "latency<1s",
    "latency.success>=0.9",
    "ttft.rate>=0.9",
    "success>=1.01",
    "goodput>=1.01",
    "goodput<50ms",
    "ttft.goodput>=0.9",
    "success>=101%",
    "success>=95s",
    "rate>=5",
    "p99<200ms extra",
    "p99<200ms,p50<1s",
    "p٩<1s",
]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("metric.cache_hit>0.8", r" \(say which statistic, e\.g\. metric\.cache_hit\.mean\)"),
        ("metric.cache_hit.mean>80%", r" \(it has the unit that your code gave it: leave out %\)"),
        ("metric.wait.p99<20ms", r" \(it has the unit that your code gave it: leave out ms\)"),
        ("metric.wait.p0<20", r" \(percentiles start above 0\)"),
        ("metric.wait.mode<20", ""),
        ("metric.1st.mean<20", ""),
        ("metric.mean<20", r" \(say which statistic, e\.g\. metric\.mean\.mean\)"),
        ("metric.a.mean<nan", ""),
        ("metric.a.mean<1e999", ""),
        (f"metric.{'x' * 65}.mean<1", ""),
        ("spike:metric.a<1", r" \(say which statistic, e\.g\. metric\.a\.mean\)"),
    ],
)
def test_what_is_no_limit_on_a_metric_is_refused(text: str, said: str) -> None:
    with pytest.raises(BenchmarkError, match=rf"is not a limit on a metric of your own{said}\. Write metric\.NAME"):
        Slo.parse(text)


@pytest.mark.parametrize("text", BAD_SLOS)
def test_what_is_no_limit_is_refused_with_examples(text: str) -> None:
    with pytest.raises(BenchmarkError, match=r"is not a limit.* Write e\.g\. p99<200ms") as raised:
        Slo.parse(text)
    assert repr(text) in str(raised.value)


@pytest.mark.parametrize(
    ("text", "below", "at", "above"),
    [
        ("p99<1s", True, False, False),
        ("p99<=1s", True, True, False),
        ("p99>1s", False, False, True),
        ("p99>=1s", False, True, True),
    ],
)
def test_a_limit_is_met_as_its_operator_says(text: str, below: bool, at: bool, above: bool) -> None:
    slo = Slo.parse(text)
    assert [slo.met(value) for value in (0.999, 1.0, 1.001)] == [below, at, above]
    assert not slo.met(None)


@given(st.integers(1, 10**6))
def test_a_value_on_its_limit_meets_it(microseconds: int) -> None:
    measured = microseconds * 1000 / NS
    assert Slo.parse(f"p99<={microseconds}us").met(measured)
    assert Slo.parse(f"p99<={Decimal(microseconds) / 1000:f}ms").met(measured)
    assert not Slo.parse(f"p99<{microseconds}us").met(measured)


@pytest.mark.parametrize(
    ("text", "value"), [("10", "10"), (" 0.1 ", "0.1"), ("1e3", "1000"), ("+.5", "0.5"), ("-2", "-2"), ("5.", "5")]
)
def test_numbers_are_read_exactly(text: str, value: str) -> None:
    assert parse_decimal("--x", text) == Decimal(value)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10s", "10"),
        (" 1.5 m ", "90"),
        ("2h", "7200"),
        ("250ms", "0.25"),
        ("3us", "0.000003"),
        ("0s", "0"),
        ("100s", "100"),
    ],
)
def test_a_duration_may_have_its_unit(text: str, seconds: str) -> None:
    assert in_seconds(text) == seconds


@pytest.mark.parametrize("text", ["10", "-2s", "1e3s", "10 seconds", "s", "٣s", "1m30s", ""])
def test_any_other_text_of_a_duration_stays_as_it_is(text: str) -> None:
    assert in_seconds(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "x",
        "1,000",
        "1_000",
        "nan",
        "sNaN",
        "inf",
        "-Infinity",
        "1 2",
        "0x10",
        "10s",
        "١٢",
        "1e99999999999999999999",
    ],
)
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(BenchmarkError, match=r"^--x must be a number, not "):
        parse_decimal("--x", text)


@pytest.mark.parametrize(
    ("text", "value"), [("10", 10), (" +7 ", 7), ("-3", -3), (str(2**63 - 1), 2**63 - 1), ("1" * 50, int("1" * 50))]
)
def test_whole_numbers_are_read_exactly(text: str, value: int) -> None:
    assert parse_int("--x", text) == value


@pytest.mark.parametrize("text", ["", "x", "1.0", "1e3", "1,000", "1_000", "٣", "nan", "0x1", "9" * 5000])
def test_what_is_no_whole_number_is_refused(text: str) -> None:
    with pytest.raises(BenchmarkError, match=r"^--x must be a whole number, not ") as raised:
        parse_int("--x", text)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize(
    ("text", "metric", "op", "limit"),
    [
        ("ttft<1s", "ttft", "<", 1.0),
        (" itl <= 50ms ", "itl", "<=", 0.05),
        ("tpot<900us", "tpot", "<", 0.0009),
        ("latency<0.5s", "latency", "<", 0.5),
        ("e2e<0.5s", "latency", "<", 0.5),
        ("response_time<2s", "response_time", "<", 2.0),
    ],
)
def test_a_limit_on_a_request_is_read_exactly(text: str, metric: str, op: str, limit: float) -> None:
    parsed = RequestLimit.parse(text)
    assert (parsed.metric, parsed.op, parsed.limit) == (metric, op, limit)
    assert RequestLimit.parse(parsed.expression) == parsed


@pytest.mark.parametrize(
    "text",
    ["", "ttft", "ttft<", "ttft<1", "ttft<50%", "ttft>1s", "ttft.p99<1s", "p99<1s", "lag<1s", "TTFT<1s", "ttft<-1s"],
)
def test_what_is_no_limit_on_a_request_is_refused_with_examples(text: str) -> None:
    with pytest.raises(BenchmarkError, match=r"is not a limit on a request.* e\.g\. ttft<1s,itl<50ms") as raised:
        RequestLimit.parse(text)
    assert repr(text) in str(raised.value)


def test_a_plan_of_before_there_was_goodput_is_read() -> None:
    data = OPEN.to_json()
    del data["goodput"]
    assert WavePlan.from_json(data) == OPEN


def test_what_only_follows_from_a_flag_that_cannot_be_read_is_not_reported() -> None:
    table = [Flag("--client-rps", "R", "", parse_decimal, sets="rate"), Flag("--num-requests", "N", "", parse_int)]
    problems: list[str] = []
    given = read_flags(table, {"client_rps": "many", "num_requests": "1000000000"}, problems)
    plan = WavePlan(OpenLoop(Decimal(1)), Bounds(**given.of(Bounds)), factories_file=Path("nowhere.py"))
    assert given.problem_texts(problems_of(plan)) == ["--factories-file nowhere.py: there is no such file."]
    assert problems == ["--client-rps must be a number, not 'many'."]


@pytest.mark.parametrize(
    ("flag", "text"),
    [
        (Flag("--a", "A", "first"), "first"),
        (Flag("--a", "A", "first", default=0.5), "first (default 0.5)"),
        (Flag("--a", "A", "first (default {default}; best)", default=Decimal(60)), "first (default 60; best)"),
        (Flag("--a", "A", "first", default=("x", "y")), "first (default x,y)"),
    ],
)
def test_help_says_the_default_once(flag: Flag, text: str) -> None:
    assert flag.help == text


@pytest.mark.parametrize("settings", [None, "MODEL=a", [["MODEL", "a"]], {"MODEL": 1}, {"MODEL": None}])
def test_settings_that_are_no_texts_are_refused(settings: Any) -> None:
    plan = WavePlan(OpenLoop(Decimal(1)), Bounds(Decimal(1)), factory_settings={"MODEL": "a"})
    assert WavePlan.from_json(plan.to_json()) == plan
    with pytest.raises(TypeError, match="factory_settings must be strings by name"):
        WavePlan.from_json({**plan.to_json(), "factory_settings": settings})


def test_settings_are_for_a_factories_file() -> None:
    plan = WavePlan(
        OpenLoop(Decimal(1)), Bounds(Decimal(1)), locust_file=Path(__file__), factory_settings={"MODEL": "a"}
    )
    reported = [problem.text for problem in problems_of(plan)]
    assert reported == ["--set is for a factories file, and a --locust-file has no settings."]
