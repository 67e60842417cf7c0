"""The embedded LLM engine in virtual time, against closed forms, sums, and its rules written out plainly."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.embedded.llm.engine import Engine
from inference_benchmarker.embedded.llm.kv_blocks import chain_of
from inference_benchmarker.embedded.llm.rules import PROFILES, EngineRules
from inference_benchmarker.embedded.llm.token_job import TokenJob
from tests.case import case
from tests.embedded.llm.plain_engine import Asked, PlainEngine

if TYPE_CHECKING:
    from collections.abc import Sequence

FOR_EVER = 1 << 62
MS = 1_000_000
H100 = PROFILES["8b-h100"]
STEADY = EngineRules(1 << 20, (0.0, 0.01, 5.0), (0.0, 0.0, 10.0, 0.0))


def run(engine: Engine, asked: Sequence[Asked], tokens_per_piece: int = 1) -> list[TokenJob]:
    size = engine.rules.block_size
    jobs = []
    for each in asked:
        chain = chain_of([*each.prompt, *each.answer], size)
        jobs.append(TokenJob(len(each.prompt), len(each.answer), chain, tokens_per_piece))
        engine.offer(each.at_ns, jobs[-1])
    engine.take_ready(2 * FOR_EVER)
    return jobs


def lone(rules: EngineRules, prompt: int, output: int) -> TokenJob:
    return run(Engine(rules), [Asked(7, list(range(prompt)), list(range(output)))])[0]


def busy(seed: int, *, count: int = 60, groups: int = 4, spread_ms: int = 40) -> list[Asked]:
    """Requests that share beginnings, of which some go on where another ended."""
    draws = random.Random(seed)
    shared = [draws.choices(range(1000), k=draws.randrange(60)) for _ in range(groups)]
    asked: list[Asked] = []
    at = 0
    for _ in range(count):
        at += draws.randrange(spread_ms * MS)
        base = draws.choice(shared)
        if asked and draws.random() < 0.4:
            before = draws.choice(asked)
            base = before.prompt + before.answer
        prompt = [*base[: draws.randrange(len(base) + 1)], *draws.choices(range(1000), k=draws.randrange(80))] or [0]
        asked.append(Asked(at, prompt[-200:], draws.choices(range(1000), k=draws.randrange(1, 40))))
    return asked


def test_a_lone_prompt_takes_what_the_fit_says_and_each_token_its_step() -> None:
    square, each, base = H100.prefill_ms
    for prompt in (1, 16, 1000, 8192):
        with case(prompt):
            job = lone(H100, prompt, 3)
            assert job.first_token_ns is not None
            fit = square * prompt**2 + each * prompt + base
            assert job.first_token_ns - job.arrival_ns == pytest.approx(fit * MS, abs=1)
    long = lone(H100, 20_000, 1)  # in three steps, each with the base
    assert long.finish_ns == pytest.approx(7 + (square * 20_000**2 + each * 20_000 + 3 * base) * MS, abs=3)


def test_a_step_that_decodes_takes_what_the_fit_of_the_cache_in_use_says() -> None:
    rules = replace(H100, kv_tokens=1600)
    job = lone(rules, 800, 2)
    assert job.finish_ns is not None
    assert job.first_token_ns is not None
    assert job.finish_ns - job.first_token_ns == pytest.approx((-25.74 * 0.25 + 54.01 * 0.5 + 5.74) * MS, abs=1)
    steps = [replace(H100, step_ms=(0, 0, base, each)) for base, each in ((0.2, 0), (2, 0.5))]
    assert [each.decode_ms(500, 8) for each in steps] == [1, 6]
    assert H100.decode_ms(10**9, 8) == pytest.approx(-25.74 + 54.01 + 5.74)


def test_a_shared_beginning_is_read_once_for_each_answer() -> None:
    rules = replace(H100, kv_tokens=1600)
    first, second = run(Engine(rules), [Asked(0, list(range(800)), [0] * 100), Asked(1, list(range(800)), [0] * 3)])
    assert (first.cached, second.cached) == (0, 784)
    begun, ended = second.first_token_ns or 0, second.finish_ns or 0
    # In the first of two steps, 801 tokens are before the new one of the first answer, and 800 before the second's.
    expected = rules.decode_ms(1601, 2) + rules.decode_ms(1603, 2)
    assert ended - begun == pytest.approx(expected * MS, abs=2)


def test_answers_that_decode_together_take_no_longer_than_one() -> None:
    for together in (1, 5, 64):
        with case(together):
            engine = Engine(STEADY)
            jobs = [engine.offer(0, TokenJob(1, 100, (), 100)) for _ in range(together)]
            engine.take_ready(FOR_EVER)
            begun = max(job.first_token_ns or 0 for job in jobs)
            assert begun <= 2 * (5 + 0.01 * together + 10) * MS
            # The one that came first decodes while the others' prompts are computed.
            assert {job.finish_ns for job in jobs[1:]} <= {begun + 99 * 10 * MS}


def test_prompts_are_computed_in_the_order_in_which_they_came() -> None:
    rules = replace(STEADY, max_num_batched_tokens=100, max_num_seqs=3)
    jobs = run(Engine(rules), [Asked(0, [number] * 250, [0] * 5) for number in range(8)])
    assert [job.start_ns for job in jobs] == sorted(job.start_ns or 0 for job in jobs)
    firsts = [job.first_token_ns or 0 for job in jobs]
    assert firsts == sorted(firsts)
    assert len(set(firsts)) == 8


RULES = st.builds(
    EngineRules,
    kv_tokens=st.integers(256, 1300),
    prefill_ms=st.just(H100.prefill_ms),
    step_ms=st.just((-25.74, 54.01, 5.74, 0.1)),
    block_size=st.sampled_from((1, 4, 16)),
    max_num_seqs=st.integers(1, 12),
    max_num_batched_tokens=st.sampled_from((16, 50, 400)),
)


@settings(max_examples=25, deadline=None)
@given(rules=RULES, seed=st.integers(0, 10**6), tokens_per_piece=st.sampled_from((1, 3, 1000)))
def test_every_request_fares_as_by_the_rules_written_out(rules: EngineRules, seed: int, tokens_per_piece: int) -> None:
    asked = [each for each in busy(seed, count=25, spread_ms=1 + seed % 60) if len(each.prompt + each.answer) <= 240]
    engine = Engine(rules)
    jobs = run(engine, asked, tokens_per_piece)
    expected = PlainEngine(rules).run(asked)
    for job, each in zip(jobs, expected, strict=True):
        assert (job.first_token_ns, job.finish_ns) == (each.token_ns[0], each.token_ns[-1])
        assert (job.cached, job.preemptions) == (each.cached, each.preemptions)
        assert (job.computed, job.produced) == (each.computed, each.produced)
    assert engine.kv_used() == 0
    assert engine.meter.output_tokens == sum(len(each.answer) for each in asked)
    assert engine.meter.prompt_tokens == sum(len(each.prompt) for each in asked)
    assert engine.meter.preemptions == sum(job.preemptions for job in jobs)


def test_tokens_that_nobody_preempts_are_computed_once_or_come_from_the_cache() -> None:
    engine = Engine(H100)
    jobs = run(engine, busy(1))
    assert engine.meter.preemptions == 0
    for job in jobs:
        assert job.computed + (job.cached or 0) == job.prompt + job.output - 1  # the last token is given, not computed
    assert engine.meter.cached_tokens == sum(job.cached or 0 for job in jobs) > 0


def test_the_last_token_of_a_prompt_is_always_computed() -> None:
    asked = [Asked(at * 10**12, list(range(tokens)), [0]) for at, tokens in enumerate((48, 48, 49, 47, 16, 16))]
    assert [job.cached for job in run(Engine(H100), asked)] == [0, 32, 48, 32, 0, 0]


def test_a_prompt_waits_until_there_is_room_for_all_of_it() -> None:
    rules = replace(STEADY, kv_tokens=160, max_num_batched_tokens=32, max_num_seqs=8)
    first, long, short = run(Engine(rules), [Asked(0, [1] * 60, [0] * 5), Asked(1, [2] * 100, [0]), Asked(2, [3], [0])])
    assert first.finish_ns == long.start_ns  # there is room for a first piece of it from the beginning on
    assert (short.start_ns or 0) > (long.start_ns or 0)
    assert sum(job.preemptions for job in (first, long, short)) == 0


def test_blocks_that_are_not_full_are_taken_before_those_that_can_be_found() -> None:
    texts = [[1] * 33, [2] * 20, [3] * 10, [1] * 33]
    asked = [Asked(at * 10**12, text, [0]) for at, text in enumerate(texts)]
    # The third takes the end of the second, not that of the first.
    assert [job.cached for job in run(Engine(replace(STEADY, kv_tokens=64)), asked)] == [0, 0, 0, 32]


def test_a_block_that_an_answer_fills_is_found_in_that_very_step() -> None:
    text = list(range(40))
    for step, cached in ((20, 16), (21, 32)):
        with case(step):
            engine, job = Engine(STEADY), TokenJob(35, 1, chain_of(text, 16))
            engine.offer(0, TokenJob(10, 30, chain_of(text, 16), 30))
            engine.offer(round((5.1 + 10 * step) * MS) - 1, job)
            engine.take_ready(FOR_EVER)
            assert job.cached == cached


def test_hits_are_those_of_a_trie_when_the_cache_is_large() -> None:
    engine, size = Engine(H100), H100.block_size
    trie: set[tuple[int, ...]] = set()
    at = 0
    for each in busy(2, count=150):
        text = each.prompt + each.answer
        known = 0
        while (known + 1) * size < len(each.prompt) and tuple(text[: (known + 1) * size]) in trie:
            known += 1
        at += 10**12  # one after the other
        job = TokenJob(len(each.prompt), len(each.answer), chain_of(text, size))
        engine.offer(at, job)
        engine.take_ready(at + 10**12 - 1)
        assert job.cached == known * size
        # The last token of an answer is never computed.
        trie |= {tuple(text[:end]) for end in range(size, len(text), size)}


def test_a_full_cache_preempts_and_gives_fewer_tokens_a_second() -> None:
    figures = []
    for kv_tokens in (1 << 16, 1 << 11):
        engine = Engine(replace(STEADY, kv_tokens=kv_tokens))
        jobs = run(engine, [Asked(number * MS, [number, *range(300)], [number] * 200) for number in range(100)])
        assert {job.produced for job in jobs} == {200}
        end = max(job.finish_ns or 0 for job in jobs)
        figures.append((engine.meter.preemptions, 100 * 200 / end))
    (none, fast), (many, slow) = figures
    assert none == 0 < many
    assert slow < fast / 2


def test_pieces_come_as_often_as_asked_for_and_the_last_with_the_end() -> None:
    engine = Engine(STEADY)
    job = engine.offer(0, TokenJob(10, 10, (), 4))
    assert engine.take_ready(15 * MS) == []
    assert [len(engine.take_ready(at * MS)) for at in (36, 76, 96)] == [1, 1, 1]
    assert (job.produced, engine.take_ready(FOR_EVER), engine.next_ns()) == (10, [], None)


def test_a_request_that_nobody_wants_any_more_leaves_nothing_behind() -> None:
    for seed in range(15):
        with case(seed):
            draws = random.Random(seed)
            engine = Engine(replace(H100, kv_tokens=800, max_num_batched_tokens=60, max_num_seqs=8))
            jobs: list[TokenJob] = []
            gone: set[TokenJob] = set()
            for each in busy(seed, count=50):
                chain = chain_of([*each.prompt, *each.answer], 16)
                jobs.append(engine.offer(each.at_ns, TokenJob(len(each.prompt), len(each.answer), chain)))
                chosen = draws.choice(jobs)
                if draws.random() < 0.5 and chosen.finish_ns is None and chosen not in gone:
                    engine.abort(each.at_ns, chosen)
                    gone.add(chosen)
            assert gone.isdisjoint(engine.take_ready(FOR_EVER))
            assert [job.finish_ns is None for job in jobs] == [job in gone for job in jobs]
            assert (engine.kv_used(), engine.present(FOR_EVER), engine.queue_length(FOR_EVER)) == (0, 0, 0)
            assert (engine.meter.aborted, engine.meter.requests) == (len(gone), len(jobs) - len(gone))
            # What is left goes on as if it were new: no count of contexts or of blocks is off.
            (last,) = run(engine, [Asked(FOR_EVER, [-1] * 100, [0] * 20)])
            fresh = run(Engine(engine.rules), [Asked(FOR_EVER, [-1] * 100, [0] * 20)])
            assert (last.first_token_ns, last.finish_ns) == (fresh[0].first_token_ns, fresh[0].finish_ns)


def test_a_standstill_moves_what_comes_after_it() -> None:
    for stalls, moved in (((0,), 100), ((20, 30), 110), ((200_000,), 0)):
        with case(stalls):
            engine = Engine(STEADY)
            job = TokenJob(100, 10, (), 10)
            if stalls[0]:
                engine.offer(1, job)
            for at in stalls:
                engine.stall(max(1, at * MS), 0.1)
            if not stalls[0]:
                engine.offer(1, job)
            engine.take_ready(FOR_EVER)
            assert job.finish_ns == 1 + (5 + 1 + 9 * 10 + moved) * MS


def test_the_same_requests_give_the_same_page() -> None:
    pages = set()
    for _ in range(2):
        engine = Engine(replace(H100, kv_tokens=800))
        run(engine, busy(5))
        pages.add(engine.metrics(FOR_EVER))
    assert len(pages) == 1
    (page,) = pages
    assert 'vllm:num_preemptions_total{model_name="demo",engine="0"} 0' not in page


def test_the_time_in_steps_and_the_requests_present_add_up() -> None:
    engine = Engine(replace(H100, kv_tokens=800))
    jobs = run(engine, busy(6))
    spent = sum((job.finish_ns or 0) - job.arrival_ns for job in jobs)
    assert engine.present_ns(FOR_EVER) == spent
    assert engine.take_peak(FOR_EVER) > 1
    assert (engine.present(FOR_EVER), engine.queue_length(FOR_EVER), engine.busy(FOR_EVER)) == (0, 0, 0)
    assert 0 < engine.busy_ns(FOR_EVER) <= max(job.finish_ns or 0 for job in jobs)


def test_rules_that_no_engine_can_have_are_named() -> None:
    for change, field in (
        ({"kv_tokens": 15}, "kv_tokens"),
        ({"block_size": 0}, "block_size"),
        ({"max_num_seqs": 0}, "max_num_seqs"),
        ({"max_num_batched_tokens": 100}, "max_num_batched_tokens"),
        ({"prefill_ms": (1.0, 2.0)}, "prefill_ms"),
        ({"prefill_ms": (0.0, -1.0, 2.0)}, "prefill_ms"),
        ({"step_ms": (1.0, 2.0, float("nan"), 0.0)}, "step_ms"),
    ):
        with case(change):
            assert [name for name, _ in replace(H100, **change).problems()] == [field]
    assert not [name for name, rules in PROFILES.items() if list(rules.problems())]
