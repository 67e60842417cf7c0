"""Sessions and turns in a comparison: their rows, held against ones that are computed row by row."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from inference_benchmarker import Wave
from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.plan.slo import MaxRegression
from inference_benchmarker.records.record import RequestRecord
from inference_benchmarker.words.units import NS
from tests.parts import in_parts
from tests.waves import MS, observe, open_plan
from visualization.comparison.comparison import compare
from visualization.comparison.headline import headline
from visualization.comparison.report import to_junit, to_markdown, to_text
from visualization.comparison.result import result_of
from visualization.comparison.sessions import is_of_sessions

if TYPE_CHECKING:
    from inference_benchmarker.records.columns import Records

SECONDS, RATE = 40, 25


def chats(seed: int, slower: float = 1.0, failing: float = 0.02) -> Wave:
    """Sessions of two or three streamed turns; ``slower``: the first pieces of later turns."""
    draw = random.Random(seed)
    records: list[RequestRecord] = []
    for number in range(SECONDS * RATE):
        due = number * NS // RATE
        turns = draw.randint(2, 3)
        for turn in range(1, turns + 1):
            first = due + round(draw.gauss(20, 3) * MS * (slower if turn > 1 else 1))
            done = first + 30 * MS
            record = RequestRecord(number, 0, due, due, done, session=number, turn=turn, chunks=2, gaps=(30_000,))
            failed = draw.random() < failing
            records.append(
                record._replace(
                    first_token=first,
                    last_token=done,
                    think_ns=None if turn == 1 else due - records[-1].done,
                    outcome="failed" if failed else "ok",
                    error="E" if failed else None,
                    ended="failed" if failed else "completed" if turn == turns else None,
                )
            )
            if failed:
                break
            due = done + 100 * MS
    facts = observe(open_plan(str(RATE), str(SECONDS)), records, environment={"sessions": True})
    return Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__})


@pytest.fixture(scope="module")
def pair() -> tuple[Wave, Wave]:
    return chats(1), chats(2, slower=1.3)


def test_what_is_slower_in_later_turns_is_reported_of_them_alone(pair: tuple[Wave, Wave]) -> None:
    found = compare(*pair)
    rows = {row.name: row for row in found.rows}
    fields = {name: row.outcome for name, row in rows.items()}
    assert (fields["turn1.ttft.p50"], fields["turn2+.ttft.p50"]) == ("unchanged", "worse")
    assert fields["turn2+.ttft.p99"] in ("worse", "cannot tell")  # few requests lie in a tail
    assert fields["session.success"] in ("unchanged", "cannot tell")
    for wave, side in zip(pair, ("base", "new"), strict=True):
        own = [row for row in wave.records if row.outcome == "ok" and (row.turn or 0) > 1]
        firsts = sorted((row.first_token - row.sent) / NS for row in own if row.first_token is not None)
        assert getattr(rows["turn2+.ttft.p50"], side).value == firsts[-(-len(firsts) // 2) - 1]
        ended = [row for row in wave.records if row.ended is not None]
        share = sum(row.ended == "completed" for row in ended) / len(ended)
        assert getattr(rows["session.success"], side).value == pytest.approx(share)
        begun = {row.index: row.due for row in wave.records if row.turn == 1}
        durations = sorted((row.done - begun[row.index]) / NS for row in ended if row.ended == "completed")
        assert getattr(rows["session.p50"], side).value == durations[-(-len(durations) // 2) - 1]


def test_every_form_has_the_rows_and_a_terminal_has_room_for_them(pair: tuple[Wave, Wave]) -> None:
    found = compare(*pair)
    text, names = to_text(found, 80), ("session.success", "session.p99", "turn1.ttft.p50", "turn2+.latency.p99")
    assert max(map(len, text.splitlines())) <= 80
    for form in (text, to_markdown(found), to_junit(found), str(encoded(result_of(found)))):
        assert [name for name in names if name not in form] == []
    of_turns = replace(found, rows=tuple(row for row in found.rows if row.name == "turn2+.ttft.p50"))
    assert "slower at turn2+ TTFT p50" in headline(of_turns)


def test_sessions_that_fail_more_are_worse() -> None:
    fields = {row.name: row for row in compare(chats(1, failing=0), chats(2, failing=0.1)).rows}
    row = fields["session.success"]
    assert (row.outcome, row.base and row.base.value) == ("worse", 1.0)
    assert row.regression is not None
    assert row.regression > 0


def test_sessions_left_open_are_no_shorter_for_it() -> None:
    base = chats(1)
    cut = [row._replace(ended=None) if row.index % 10 == 0 else row for row in base.records]
    new = replace(base, records=type(base.records).of(cut))  # type: ignore[attr-defined]  # they are in memory
    rows = {row.name: row for row in compare(base, new).rows}
    assert rows["session.p99"].new is not None
    assert rows["session.p99"].new.is_lower_bound
    assert rows["session.p99"].high == np.inf or rows["session.p99"].high is None


def test_in_parts_the_estimates_are_the_same(pair: tuple[Wave, Wave]) -> None:
    records: Records = pair[0].records  # type: ignore[assignment]  # observe() makes them in memory
    in_some = replace(pair[0], records=in_parts(records, 300))
    whole, parts = compare(*pair), compare(in_some, pair[1])
    reported = [
        [(row.name, row.low, row.high) for row in each.rows if is_of_sessions(row.metric)] for each in (whole, parts)
    ]
    assert len(reported[0]) == 11
    assert reported[0] == reported[1]


def test_of_requests_there_are_no_such_rows() -> None:
    facts = observe(open_plan("10", "1"), [RequestRecord(0, 0, 0, 0, MS)])
    wave = Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__})
    assert not [row for row in compare(wave, wave).rows if row.name.startswith(("session", "turn"))]


def test_limits_on_sessions_and_turns_are_held_against_their_rows(pair: tuple[Wave, Wave]) -> None:
    texts = ("turn2+.ttft.p50=10%", "turn1.ttft.p50=10%", "session.success=5%", "session.p90=50%", "turn2+.p50=200%")
    limits = [MaxRegression.parse(text) for text in texts]
    found = compare(*pair, limits)
    assert {check.limit.expression: (check.row.name, check.state) for check in found.checks} == {
        "turn2+.ttft.p50=10%": ("turn2+.ttft.p50", "broken"),
        "turn1.ttft.p50=10%": ("turn1.ttft.p50", "kept"),
        "session.success=5%": ("session.success", "kept"),
        "session.p90=50%": ("session.p90", "kept"),
        "turn2+.p50=200%": ("turn2+.response_time.p50", "kept"),
    }
    assert found.exit_code == 1
    (late,) = [row for row in found.rows if row.name == "turn2+.response_time.p50"]
    own = [row for row in pair[0].records if row.outcome == "ok" and (row.turn or 0) > 1]
    times = sorted((row.done - row.due) / NS for row in own)
    assert late.base is not None
    assert late.base.value == times[-(-len(times) // 2) - 1]
    for reported in (to_text(found), to_markdown(found), to_junit(found)):
        assert all(text in reported for text in texts[1:3])


def test_a_limit_on_turns_of_runs_without_any_is_broken() -> None:
    plain = chats(1)
    facts = observe(
        open_plan(str(RATE), str(SECONDS)),
        [row._replace(session=None, turn=None, think_ns=None, ended=None) for row in plain.records if row.turn == 1],
    )
    waves = Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__})
    found = compare(waves, waves, [MaxRegression.parse("turn1.ttft.p50=10%"), MaxRegression.parse("session.p50=9%")])
    assert [check.state for check in found.checks] == ["broken", "broken"]
    assert "turn1.ttft.p50" in to_text(found)
