"""Waves become points: repetitions, stages, what is not usable, the cost; and what the result remarks on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from inference_benchmarker.facts.client_use import Answers, WorkerUse
from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.server_limit import ServerLimit
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.plan.stage import Stage
from inference_benchmarker.words.units import NS
from server_capacity.results.types.price import per_million
from tests.case import case
from tests.counted import unrecorded
from tests.mentions import mentions
from tests.waves import chat
from visualization.pareto.costs import Weights, costs_of
from visualization.pareto.points import ITL, MEDIAN, P90, Configuration, Point, Quantity, points_of, unusable_because
from visualization.pareto.result import pareto_of
from visualization.pareto.text import COLUMNS, to_csv, to_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inference_benchmarker.wave.wave import Wave


def point(*waves: Wave, **more: Any) -> Point:
    (found,) = points_of(Configuration("A", waves, **more))
    return found


def test_a_point_has_the_speed_of_a_user_and_the_tokens_of_a_gpu() -> None:
    found = point(chat(), gpus=4)
    assert found.speeds[MEDIAN].value == pytest.approx(50, rel=0.02)
    assert found.speeds[P90].value == pytest.approx(1000 / (20 * 1.08), rel=0.02)
    assert found.rates["output"].value == pytest.approx(22, rel=0.02)
    assert found.per_gpu["output"].value == pytest.approx(5.5, rel=0.02)
    assert found.per_gpu["total"].value == pytest.approx(30.5, rel=0.02)
    low, high = found.speeds[MEDIAN].low, found.speeds[MEDIAN].high
    assert low is not None
    assert high is not None
    assert low < found.speeds[MEDIAN].value < high


def test_waves_of_one_load_are_one_point_whose_interval_has_their_differences() -> None:
    one, same = point(chat()), point(*(chat(gap_ms=gap, seed=gap) for gap in (18, 20, 22)))
    assert same.speeds[MEDIAN].value == pytest.approx(50, rel=0.03)
    widths = [(each.speeds[MEDIAN].high or 0) - (each.speeds[MEDIAN].low or 0) for each in (one, same)]
    assert widths[1] > 3 * widths[0]


def test_of_repetitions_those_count_that_are_usable() -> None:
    found = point(chat(gap_ms=20), replace(chat(gap_ms=40, seed=2), interrupted=True))
    assert found.unusable == ()
    assert found.speeds[MEDIAN].value == pytest.approx(50, rel=0.02)


def test_a_repetition_that_does_not_count_is_named() -> None:
    found = pareto_of([Configuration("A", (chat(), UNUSABLE["INVALID"]()))], per_million).result
    assert found.exit_code == 3
    assert found.points[0].unusable == []
    assert mentions(found.headline, "1 of 2 runs is not usable: INVALID")


def test_the_points_are_in_the_order_of_their_loads() -> None:
    found = points_of(Configuration("A", tuple(chat(rate) for rate in (4, 1, 2))))
    assert [each.load for each in found] == ["1/s", "2/s", "4/s"]


def test_a_steady_stage_is_a_point_and_a_ramp_is_none() -> None:
    whole = chat(2, seconds=60)
    stages = tuple(map(Stage.parse, ("low=2:20s", "2..2:20s", "2..1:20s")))
    plan = replace(whole.plan, load=OpenLoop(stages=stages), bounds=Bounds())
    found = points_of(Configuration("A", (replace(whole, plan=plan),)))
    assert [each.load for each in found] == ["low 2/s", "2 2/s"]
    assert [each.speeds[MEDIAN].value for each in found] == pytest.approx([50, 50], rel=0.03)


def missing(limit: str) -> Wave:
    found = chat()
    return replace(found, plan=replace(found.plan, slos=(Slo.parse(limit),)))


UNUSABLE: dict[str, Callable[[], Wave]] = {
    "interrupted": lambda: replace(chat(), interrupted=True),
    "INVALID": lambda: replace(chat(), lost_workers=(0,)),
    "LIMIT MISSED": lambda: missing("ttft.p50<50ms"),
    "FAILED": lambda: chat(outcomes=["failed"] * 80),
    "PENDING": lambda: chat(server_limits=(ServerLimit.parse("server.use<70%"),)),
}


def test_what_nobody_should_choose_by_is_marked_and_the_exit_code_is_inherited() -> None:
    for reason, make in UNUSABLE.items():
        with case(reason):
            bad = make()
            assert reason in [*unusable_because(bad)]
            found = pareto_of([Configuration("A", (chat(1), bad))], per_million)
            assert found.result.exit_code == bad.verdict.exit_code > 0
            assert reason in found.result.points[1].unusable
            assert all(1 not in answer.frontier for answer in found.answers)
            assert mentions(found.result.headline, "1 of 2 runs is not usable", reason)
            assert mentions(to_text(found), "✗ A, 2/s", reason)
    assert pareto_of([Configuration("A", (chat(),))], per_million).result.exit_code == 0


def test_answers_that_hid_their_statuses_are_in_the_first_line() -> None:
    made = replace(chat(), workers=(WorkerUse(answers=Answers(hidden={"503": 7})),))
    found = pareto_of([Configuration("A", (chat(1), made))], per_million).result
    assert found.exit_code == 0, "as of the wave itself"
    assert found.points[1].unusable == ["doubtful answers"]
    assert mentions(found.headline, "1 of 2 runs is not usable: doubtful answers", "A: 7 of 80", "503: 7")


def priced(rates: dict[str, float], **more: Any) -> Point:
    quantities = {kind: Quantity(rate, rate / 2, 2 * rate) for kind, rate in rates.items()}
    return Point(Configuration("A", (), 1, 3.6, **more), "1/s", 1, (), {}, quantities, None, None, (0, 0))


def test_a_million_tokens_cost_the_hour_over_those_that_are_sure() -> None:
    rates = {"input": 100.0, "cached": 60.0, "uncached": 40.0, "output": 20.0, "total": 120.0}
    found = costs_of(priced(rates), None, per_million)  # 3.6 an hour: 1,000 for a million at one a second
    assert found == pytest.approx({"input": 50, "cached": 1000 / 30, "output": 100, "total": 1000 / 60})


def test_weights_divide_one_bill() -> None:
    rates = {"input": 100.0, "cached": 60.0, "uncached": 40.0, "output": 20.0, "total": 120.0}
    found = costs_of(priced(rates), Weights(1, 0.1, 4), per_million)
    whole = 20 * found["input"] + 30 * found["cached"] + 10 * found["output"]  # a second's tokens, at the lower ends
    assert whole == pytest.approx(1000)
    assert found["output"] / found["input"] == pytest.approx(4)
    assert found["cached"] / found["input"] == pytest.approx(0.1)


def test_without_a_report_on_the_cache_the_input_is_whole() -> None:
    found = costs_of(priced({"input": 100.0, "output": 20.0}), None, per_million)
    assert found == pytest.approx({"input": 20, "output": 100})
    assert costs_of(replace(priced({"output": 1.0}), configuration=Configuration("A", ())), None, per_million) == {}


def remarks(*configurations: Configuration, **more: Any) -> Sequence[str]:
    return pareto_of(configurations, per_million, **more).result.remarks


def test_runs_of_other_prompts_or_models_are_remarked_on() -> None:
    one = chat()
    other = replace(one, plan=replace(one.plan, factory_settings={"MODEL": "b"}))
    assert mentions(remarks(Configuration("A", (one,)), Configuration("B", (other,))), "measured differently", "MODEL")
    of_two_loads = remarks(Configuration("A", (one,)), Configuration("B", (chat(4),)))
    assert not mentions(of_two_loads, "measured differently")


def test_a_configuration_without_a_price_is_named() -> None:
    found = remarks(Configuration("A", (chat(),), 1, 2.0, "USD", "given"), Configuration("B", (chat(),)))
    assert mentions(found, "B has no cost: no price was given for it")
    assert not mentions(found, "A has no cost")


def in_pieces(rate: int = 2, size: int = 80, share: float = 1.0, **more: Any) -> Wave:
    """Streams of so many requests, of which this share has no usage: pieces of several tokens count as one."""
    reported = pa.array([None if place < share * size else 44 for place in range(size)], pa.int64())
    return chat(rate, seconds=size // rate, tokens_out=reported, **more)


def test_counted_pieces_are_not_compared_with_reported_tokens() -> None:
    found = pareto_of([Configuration("A", (chat(),)), Configuration("B", (in_pieces(),))], per_million)
    assert [each.unusable for each in found.result.points] == [[], ["tokens are counted pieces"]]
    assert all(1 not in answer.frontier for answer in found.answers)
    assert mentions(found.result.headline, "A: ", "1 of 2 runs is not usable: tokens are counted pieces")
    assert mentions(to_text(found), "✗ B, 2/s: tokens are counted pieces")
    assert mentions(to_csv(found), "tokens are counted pieces")


def test_of_repetitions_those_count_whose_tokens_are_reported() -> None:
    found = pareto_of([Configuration("A", (chat(), in_pieces(gap_ms=40)))], per_million)
    assert found.result.points[0].unusable == []
    assert found.points[0].speeds[MEDIAN].value == pytest.approx(50, rel=0.02)


def test_where_all_tokens_are_counted_pieces_a_remark_says_so() -> None:
    configurations = [Configuration("A", (in_pieces(),)), Configuration("B", (in_pieces(),))]
    found = pareto_of(configurations, per_million).result
    assert [each.unusable for each in found.points] == [[], []]
    assert sum("The tokens of A and B are counted pieces" in each for each in found.remarks) == 1
    invalid = replace(chat(), lost_workers=(0,))
    found = pareto_of([Configuration("A", (invalid,)), Configuration("B", (in_pieces(),))], per_million).result
    assert found.points[1].unusable == [], "nothing usable has reported tokens"
    assert mentions(found.remarks, "The tokens of B are counted pieces")


def test_a_few_requests_without_usage_are_no_matter() -> None:
    few = Configuration("B", (in_pieces(share=0.05),))
    assert pareto_of([Configuration("A", (chat(),)), few], per_million).result.points[1].unusable == []
    several = replace(few, waves=(in_pieces(share=0.1),))
    assert pareto_of([Configuration("A", (chat(),)), several], per_million).result.points[1].unusable != []


def test_pieces_that_arrive_together_are_no_speed_of_a_user() -> None:
    buffered = chat(gap_ms=0.007)
    found = pareto_of([Configuration("A", (chat(),)), Configuration("B", (buffered,))], per_million)
    assert found.result.points[1].unusable == ["tokens arrive together"]
    assert not {MEDIAN, P90, ITL} & {*found.points[1].speeds}
    assert mentions(found.result.headline, "A: ", "1 of 2 runs is not usable: tokens arrive together")
    assert mentions(to_text(found), "✗ B, 2/s: tokens arrive together")


def test_answers_after_a_long_wait_and_fast_ones_have_a_speed() -> None:
    """A long prompt, or a queue: the pieces come in a small part of the latency, but one after another."""
    first = np.arange(80) * NS // 2 + 20 * NS
    waited: dict[str, Any] = {"first_token": first, "last_token": first + NS // 5, "done": first + NS // 5}
    for name, made in {"waited": chat(**waited), "fast": chat(gap_ms=0.9)}.items():
        with case(name):
            assert [*unusable_because(made)] == []


def test_a_point_without_a_speed_is_not_called_dominated() -> None:
    found = pareto_of([Configuration("A", (chat(), unrecorded()))], per_million)
    text = to_text(found)
    assert mentions(text, "- A, 10/s")
    assert mentions(text, "not usable; - no")
    assert "· A, 10/s" not in text
    assert mentions(found.result.remarks, "1 point has no speed: requests were not recorded (--records none)")
    assert not mentions(found.result.remarks, "two pieces")


def test_longer_answers_are_remarked_on() -> None:
    found = remarks(Configuration("A", (chat(tokens=11),)), Configuration("B", (chat(tokens=21),)))
    assert mentions(found, "answers differ in length", "11 tokens (A)", "21 tokens (B)")


def test_what_is_not_known_of_a_cost_is_said() -> None:
    configuration = Configuration("A", (chat(),), 1, 2.0, "USD", "given")
    assert mentions(remarks(configuration), "A did not report cached tokens")
    both = remarks(configuration, replace(configuration, name="B"))
    assert mentions(both, "A and B did not report cached tokens")
    assert mentions(remarks(configuration), "views of one bill")
    assert mentions(remarks(configuration, weights=Weights(1, 0, 4)), "as 1:0:4")
    assert mentions(remarks(configuration, gpus_given=False), "one GPU")


def test_a_short_wave_has_no_interval_and_says_what_it_needs() -> None:
    assert mentions(remarks(Configuration("A", (chat(seconds=5),))), "no interval of the median speed", "20 seconds")


def test_a_row_of_the_table_has_every_number() -> None:
    found = pareto_of([Configuration("A", (chat(),), 2, 2.0)], per_million)
    head, row = to_csv(found).splitlines()
    values = dict(zip(head.split(","), row.split(","), strict=True))
    assert tuple(values) == COLUMNS
    assert float(values["speed_median"]) == found.points[0].speeds[MEDIAN].value
    assert float(values["output_per_s_per_gpu"]) == found.points[0].rates["output"].value / 2
    assert (values["gpus"], values["frontier_output"], values["cached_per_s_per_gpu"]) == ("2", "True", "")
