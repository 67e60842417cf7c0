"""On a terminal of any width no line of a report or of the live view is wider, and no word is broken."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from inference_benchmarker.facts.aborted import Aborted
from inference_benchmarker.facts.client_use import (
    SERIES_LENGTH,
    Collections,
    Connections,
    LoopBlock,
    LoopDelay,
    ProcessUse,
    WorkerUse,
)
from inference_benchmarker.facts.instances import Count, Followed, ScalingEvent
from inference_benchmarker.facts.server_metric import ServerMetric
from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.plan.slo import RequestLimit, Slo
from inference_benchmarker.report.text import to_text
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.verdict.verdict import judge
from inference_benchmarker.words.text import columns, folded, plain_lines
from inference_benchmarker.words.units import NS
from tests.scenes import SCENES, Scene
from tests.waves import HOST, START, closed_plan, observe, on_time, open_plan, staged

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.records.record import RequestRecord

SEARCH = settings(max_examples=40, deadline=None, phases=[Phase.generate])  # to make one smaller takes minutes
PLANS = (open_plan("10", "3"), open_plan("7.3", None, 25), closed_plan(3, "3"), staged("a=5:2s,b_1=20:1s,5..9:2s"))
LIMITS = (
    "p50<1us",
    "p99.99<200ms",
    "latency.p95<=0.5s",
    "ttft.p90<1s",
    "itl.p99<50ms",
    "success>=0.99",
    "rate>=0.99",
    "lag.max<1ms",
    "metric.hits.mean>0.8",
)
WIDTHS = st.integers(60, 200)
NAMES = st.text(st.sampled_from("abcXYZ019_-./ é模型\t\x1b"), min_size=1, max_size=70)
TIMES = st.floats(3, 11).map(lambda exponent: round(10**exponent))
SECONDS = st.floats(0, 10**5)
COUNTS = st.integers(0, 10**7)
SHARES = st.one_of(st.none(), st.floats(0, 4))


def plans() -> st.SearchStrategy[WavePlan]:
    return st.builds(
        replace,
        st.sampled_from(PLANS),
        slos=st.lists(st.sampled_from(LIMITS), max_size=4, unique=True).map(lambda all_: tuple(map(Slo.parse, all_))),
        goodput=st.sampled_from([(), (RequestLimit.parse("ttft<1s"), RequestLimit.parse("e2e<10ms"))]),
        name=st.one_of(st.none(), NAMES),
    )


@st.composite
def records(draw: st.DrawFn, plan: WavePlan) -> list[RequestRecord]:
    """What became of some of the arrivals: few values are drawn, and are used in turn."""
    took, late, gap = draw(TIMES), draw(TIMES), draw(TIMES)
    kinds = draw(st.lists(st.sampled_from(["ok", "ok", "stream", "failed", "abandoned"]), min_size=1, max_size=5))
    labels = draw(st.lists(st.one_of(st.just(""), NAMES), min_size=1, max_size=3))
    errors = draw(st.lists(NAMES, min_size=1, max_size=3))
    arrivals = on_time(plan if isinstance(plan.load, OpenLoop) else PLANS[0])
    found = []
    for number, record in enumerate(arrivals[: draw(st.integers(0, 40))]):
        kind = kinds[number % len(kinds)]
        sent = record.due + late * (number % 3)
        done = sent + took * (1 + number % 7)
        changed = record._replace(sent=sent, done=done, label=labels[number % len(labels)])
        if kind == "stream":
            gaps = (gap // 10**6,) * 3
            changed = changed._replace(first_token=sent + took, last_token=sent + took + 3 * gap, done=done + 4 * gap)
            changed = changed._replace(chunks=4, gaps=gaps, tokens_in=took % 10**6, tokens_out=gap % 10**6)
            changed = changed._replace(metrics={"hits": took / 7, "rate_of_" + "x" * 20: gap / 3})
        elif kind != "ok":
            changed = changed._replace(outcome=kind, error=errors[number % len(errors)] if kind == "failed" else None)
        found.append(changed)
    return found


WORKERS = st.builds(
    WorkerUse,
    max_rss_bytes=COUNTS.map(lambda count: count << 13),
    cpu_share=SHARES,
    starved_share=SHARES,
    silence_s=SECONDS,
    loop_delay=st.one_of(st.none(), st.builds(LoopDelay, COUNTS, SECONDS, SECONDS, SECONDS, SECONDS)),
    block=st.one_of(
        st.none(), st.builds(LoopBlock, st.sampled_from(["invoke", "tool"]), NAMES, st.floats(0, 1), SECONDS)
    ),
    collections=st.builds(Collections, COUNTS, SECONDS, SECONDS),
    connections=st.builds(Connections, opened=COUNTS, discarded=COUNTS, looked_at=COUNTS, waiting=COUNTS),
    descriptors=COUNTS,
    descriptor_limit=COUNTS,
)
SERIES = st.lists(st.floats(0, 800), max_size=SERIES_LENGTH).map(tuple)
PROCESSES = st.builds(ProcessUse, st.just("worker_0"), st.floats(0, 999), st.floats(0, 6400), COUNTS, SERIES)
STATISTICS = st.dictionaries(
    st.sampled_from(["Average", "Maximum", "p99"]), st.one_of(st.none(), st.floats(0, 1e12)), max_size=3
)
METRICS = st.builds(
    ServerMetric,
    st.just("prometheus"),
    NAMES,
    STATISTICS,
    unit=st.sampled_from([None, "Percent", "Bytes/Second"]),
    complete=st.booleans(),
    reason=st.sampled_from([None, "No data point of the window has come yet. " * 4]),
    samples=st.one_of(st.none(), COUNTS),
)
INSTANTS = st.floats(START, START + 3)
COUNTED = st.lists(st.builds(Count, INSTANTS, st.integers(0, 900), st.integers(0, 900)), min_size=1, max_size=3)
EVENTS = st.lists(st.builds(ScalingEvent, INSTANTS, st.sampled_from(["alarm", "asked", "failed"]), NAMES), max_size=2)
FOLLOWED = st.builds(
    Followed,
    NAMES,
    st.just("application-autoscaling"),
    COUNTED.map(lambda counts: tuple(sorted(counts, key=lambda count: count.at))),
    EVENTS.map(tuple),
    st.lists(NAMES, max_size=2).map(tuple),
)


@st.composite
def waves(draw: st.DrawFn) -> WaveFacts:
    plan = draw(plans())
    aborted = draw(st.sampled_from([None, Aborted("success<50%@10s", 0.4312, 1234, 10), Aborted("", None, 99_999, 4)]))
    more: dict[str, Any] = {
        "interrupted": draw(st.booleans()),
        "aborted": aborted,
        "disk_error": draw(st.sampled_from([None, "No space left on device"])),
        "loopback_down_s": draw(st.sampled_from([None, 3.2])),
        "left_behind": tuple(draw(st.lists(NAMES, max_size=3))),
        "foreign_connections": draw(st.sampled_from([0, 1, 12_345])),
        "workers": (draw(WORKERS),),
        "host": draw(st.sampled_from([None, HOST])),
        "processes": tuple(draw(st.lists(PROCESSES, max_size=2))),
        "server_metrics": tuple(draw(st.lists(METRICS, max_size=4))),
        "instances": tuple(draw(st.lists(FOLLOWED, max_size=1))),
        "dropped": [draw(st.sampled_from([0, 1, 54_321]))],
        "stopped_at": draw(st.sampled_from([None, 2 * NS])) or (None if aborted is None else 2 * NS),
    }
    found = draw(records(plan))
    texts = {record.error: ["A text of several words " * 9] for record in found if record.error}
    return observe(plan, found, caps=(500,), error_texts=texts, **more)


def words(text: str) -> Counter[str]:
    return Counter(text.split())


@SEARCH
@given(waves(), WIDTHS)
def test_any_report_fits_any_terminal_with_all_its_words(facts: WaveFacts, width: int) -> None:
    """Rows of a table that is divided have their names again; what is longer than a line stays whole."""
    summary = summarise(facts)
    verdict = judge(facts, summary)
    whole = words(plain_lines(to_text(facts, summary, verdict)))
    fitted = plain_lines(to_text(facts, summary, verdict, width=width))
    shown = folded(fitted, width)
    for line in shown.splitlines():
        assert columns(line) <= width or len(line.split()) == 1, line
    assert set(words(shown)) == set(whole)
    rows = {line for line in fitted.splitlines() if len(re.split(" {2,}", line.strip())) > 3 and columns(line) <= width}
    assert rows <= set(shown.splitlines()), "a row of a table is one line"
    assert not whole - words(shown)


@SEARCH
@given(
    st.sampled_from(sorted(SCENES)),
    WIDTHS,
    st.lists(st.sampled_from(LIMITS), max_size=6, unique=True),
    st.dictionaries(NAMES, COUNTS, max_size=6),
    st.integers(0, 10**12),
)
def test_any_live_view_fits_any_terminal(
    scene: str, width: int, limits: list[str], errors: dict[str, int], number: int
) -> None:
    """What the terminal has no room for is cut with a sign that says so."""
    found: Scene = SCENES[scene]()
    found.plan = replace(found.plan, slos=tuple(map(Slo.parse, limits)))
    found.state.feed.failed.update(errors)
    found.state.workers[0].ledger = replace(found.state.workers[0].ledger, sent=number, dropped=number // 3)
    lines = found.lines(width, "server")
    assert max(map(columns, lines)) < width
    text = "\n".join(lines)
    for row in found.rows():
        assert row.value in text or "…" in text
    for limit in limits[:1]:
        assert f" {limit}" in text
