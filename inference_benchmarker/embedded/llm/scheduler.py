"""The tokens that each step of the LLM engine computes: vLLM's order of scheduling, without time. Pure.

A request that is decoding computes one token in each step, and all such do. So a step looks only at those to which
something happens in it: they need another block, fill one, complete a piece of their answer, or end. The cost of a step
is that of these, whatever the size of the batch.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, NamedTuple

from inference_benchmarker.embedded.llm.kv_blocks import KvBlocks
from inference_benchmarker.embedded.llm.token_job import NEVER, TokenJob

if TYPE_CHECKING:
    from inference_benchmarker.embedded.llm.rules import EngineRules


class Chunk(NamedTuple):
    """The tokens after the first ``done`` of a request that a step computes at once."""

    job: TokenJob
    done: int
    tokens: int


class Step(NamedTuple):
    """The work of one step: a token for each of ``decodes`` requests, and chunks. ``preempted`` lost their place.

    ``context``: the tokens before those of the decodes, all of which they attend to; shared ones count for each.
    """

    decodes: int
    context: int
    chunks: list[Chunk]
    preempted: list[TokenJob]


class Scheduler:
    """Owns the requests that wait and run, and the blocks. Steps are begun and ended in turn.

    Running requests come first, in the order in which they were taken up. One that needs a block when there is none
    preempts the youngest that runs, which loses its blocks, goes to the front of those that wait, and has to compute
    again what is not in the cache. Then, in a step without preemption, those that wait are taken up first come, first
    served, as long as there are tokens in the step, places, and blocks for the whole prompt, which may take several
    steps.
    """

    def __init__(self, rules: EngineRules) -> None:
        self.rules = rules
        self.blocks = KvBlocks(rules.blocks)
        self.waiting: deque[TokenJob] = deque()
        self._running: dict[TokenJob, None] = {}  # in the order in which they were taken up
        self._filling: TokenJob | None = None  # the youngest that runs, while its prompt is not done
        self._due: defaultdict[int, list[TokenJob]] = defaultdict(list)
        self._step = 0
        self._taken_up = 0
        self._chunks: list[Chunk] = []
        self._leads = 0  # the sum of ``lead`` of those that are decoding

    @property
    def running(self) -> int:
        """The number of requests that have a place in the batch."""
        return len(self._running)

    def begin(self) -> Step | None:
        """The next step; None where there is nothing to compute."""
        preempted: list[TokenJob] = []
        chunks: list[Chunk] = []
        self._grow(preempted)
        decodes = self.running - (self._filling is not None)
        budget = self.rules.max_num_batched_tokens - decodes
        if self._filling is not None:
            budget -= self._fill(self._filling, budget, chunks, preempted)
        while not preempted and budget and self.waiting and self.running < self.rules.max_num_seqs:
            tokens = self._take_up(self.waiting[0], budget, chunks)
            if not tokens:
                break
            budget -= tokens
        self._chunks = chunks
        context = self._leads + decodes * self._step
        return Step(decodes, context, chunks, preempted) if decodes or chunks else None

    def end(self) -> list[TokenJob]:
        """The step is over: those whose newest token completes a piece of the answer, or is the first of all.

        Those that have their last token are gone.
        """
        due, chunks, jobs = self._due_now(), self._chunks, []
        self._step += 1
        self._chunks = []
        for job in due:
            self._settle(job)
            if job.ends_piece:
                jobs.append(job)
            self._go_on(job)
        for job, done, tokens in chunks:
            job.done = done + tokens
            if job.done < job.known:
                continue
            self._filling = None if job is self._filling else self._filling
            job.lead = job.done - self._step
            self._leads += job.lead
            job.produced += 1
            if job.ends_piece or job.produced == 1 or job.preemptions:
                jobs.append(job)
            self._go_on(job)
        return jobs

    def abort(self, job: TokenJob) -> None:
        """Nobody wants the rest of a request that is not done: it goes at once, also out of the step under way."""
        if job not in self._running:
            self.waiting.remove(job)
            return
        del self._running[job]
        if job is self._filling:
            self._filling = None
        elif job.due_step != NEVER:
            self._settle(job)
            self._leads -= job.lead
        self._chunks = [chunk for chunk in self._chunks if chunk.job is not job]
        self._release(job)

    def _due_now(self) -> list[TokenJob]:
        """Those that are decoding and to whom something happens in this step, in the order of the batch."""
        # One that was preempted may be noted twice for the same step.
        due = {job: None for job in self._due.pop(self._step, ()) if job.due_step == self._step}
        return sorted(due, key=lambda job: job.order)

    def _grow(self, preempted: list[TokenJob]) -> None:
        """Give a block to each that is decoding and has none for its next token; one that this token fills is full."""
        due = self._due_now()
        for job in due:
            if job.due_step != self._step:
                continue  # preempted meanwhile
            done = job.lead + self._step
            if done % self.rules.block_size == 0:
                if not self._make_room(job, 1, preempted):
                    continue
                job.blocks += self.blocks.take(1)
            self._fill_up(job, done + 1)
        self._due[self._step] = due

    def _fill(self, job: TokenJob, budget: int, chunks: list[Chunk], preempted: list[TokenJob]) -> int:
        """The next chunk of the prompt that is not done; returns its tokens."""
        tokens = min(job.known - job.done, budget)
        need = self._blocks_for(job.done + tokens) - len(job.blocks)
        if not tokens or not self._make_room(job, need, preempted):
            return 0
        self._add_chunk(job, tokens, need, chunks)
        return tokens

    def _take_up(self, job: TokenJob, budget: int, chunks: list[Chunk]) -> int:
        """Give the first that waits its place, the blocks that the cache has, and a chunk; its tokens, 0: no room."""
        blocks, size = self.blocks, self.rules.block_size
        found = blocks.find(job.chain, (job.known - 1) // size)
        done = len(found) * size
        tokens = min(job.known - done, budget)
        if self._blocks_for(job.known) - len(found) + blocks.free_among(found) > blocks.free:
            return 0
        self.waiting.popleft()
        blocks.hold(found)
        job.blocks, job.done, job.full = found, done, len(found)
        job.order = self._taken_up = self._taken_up + 1
        self._running[job] = None
        if done + tokens < job.known:
            self._filling = job
        self._add_chunk(job, tokens, self._blocks_for(done + tokens) - len(found), chunks)
        return tokens

    def _add_chunk(self, job: TokenJob, tokens: int, need: int, chunks: list[Chunk]) -> None:
        job.blocks += self.blocks.take(need)
        job.computed += tokens
        chunks.append(Chunk(job, job.done, tokens))
        self._fill_up(job, job.done + tokens)

    def _make_room(self, job: TokenJob, need: int, preempted: list[TokenJob]) -> bool:
        """Preempt the youngest, one after the other, until that many blocks are free; False: the job itself was."""
        while self.blocks.free < need:
            youngest, _ = self._running.popitem()
            self._preempt(youngest)
            preempted.append(youngest)
            if youngest is job:
                return False
        return True

    def _preempt(self, job: TokenJob) -> None:
        if job is self._filling:
            self._filling = None
        else:
            self._settle(job)
            self._leads -= job.lead
        self._release(job)
        job.done = 0
        job.preemptions += 1
        self.waiting.appendleft(job)

    def _settle(self, job: TokenJob) -> None:
        """Count what a job that is decoding has done before this step."""
        done = job.lead + self._step
        job.computed += done - job.done
        job.done, job.produced = done, done + 1 - job.prompt

    def _go_on(self, job: TokenJob) -> None:
        """Note the next step that has to look at a job with a new token; one that has its last token is gone."""
        left = job.output - job.produced
        if not left:
            self._leads -= job.lead
            del self._running[job]
            self._release(job)
            return
        piece = job.tokens_per_piece - job.produced % job.tokens_per_piece
        room = -job.done % self.rules.block_size  # 0: it needs a block at once; else the last of these fills one
        job.due_step = self._step + min(max(0, room - 1), min(piece, left) - 1)
        self._due[job.due_step].append(job)

    def _fill_up(self, job: TokenJob, done: int) -> None:
        """The blocks that are full with so many tokens can be found from now on, also in the step that fills them."""
        full = done // self.rules.block_size
        if full > job.full:
            self.blocks.name(job.blocks[job.full : full], job.chain[job.full : full])
            job.full = full

    def _release(self, job: TokenJob) -> None:
        self.blocks.release(job.blocks, job.full)
        job.blocks, job.due_step = [], NEVER

    def _blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.rules.block_size)
