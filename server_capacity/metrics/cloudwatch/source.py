"""The CloudWatch source: asks until the data of the wave is complete, or it is no use to wait."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any

from inference_benchmarker.facts.server_metric import SAME_CLOCK_S, Interval
from inference_benchmarker.words.redact import secret_values
from server_capacity.metrics.aws_failures import Failure
from server_capacity.metrics.cloudwatch import hardware, logs, publishers
from server_capacity.metrics.cloudwatch.fetch import Answer, Fetched, fetch, make_client, similar_dimensions
from server_capacity.metrics.cloudwatch.instances import VariantInstances
from server_capacity.metrics.cloudwatch.queries import publisher_of, wanted_of
from server_capacity.metrics.cloudwatch.reading import Reading
from server_capacity.metrics.cloudwatch.rows import Ending, rows
from server_capacity.metrics.cloudwatch.waits import Waits
from server_capacity.metrics.cloudwatch.warnings import warnings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from inference_benchmarker.facts.instances import InstanceSource
    from inference_benchmarker.facts.server_metric import LiveMetric, ServerLog, ServerMetric
    from server_capacity.metrics.cloudwatch.block import CloudWatchBlock, Variant
    from server_capacity.metrics.cloudwatch.hardware import Described
    from server_capacity.metrics.cloudwatch.queries import Publisher

POLLS_A_PERIOD, LEAST_POLL_S, MOST_POLL_S = 4, 1.0, 15.0
SECOND_LOOK_S = 5.0
"""Of a past window whose lag and period are over: what has not changed by then is taken as it is."""

MOST_FAILURES = 3
LOOK_UPS = 5
LOOK_UP_S = 2.0
"""SageMaker is given that long to say, before the wave, that there is no such endpoint, and CloudWatch what it had."""


def make_source(blocks: Sequence[CloudWatchBlock], environment: Mapping[str, str] | None = None) -> CloudWatch:
    """The checked blocks, ready to be asked. BenchmarkError where credentials or region are missing or malformed.

    boto3 finds both by its own chain; of the ``environment``, secrets stand in no line of a log that is kept.
    """
    client = make_client()
    sagemaker = hardware.make_client(client.meta.region_name) if hardware.variants(blocks) else None
    return CloudWatch(blocks, client, sagemaker=sagemaker, secrets=secret_values(environment or {}))


class CloudWatch:
    """Implements ``Source``. ``clock`` is in unix seconds; it and ``sleep`` only serve the waiting.

    ``sagemaker``: a client of its control plane, which knows the hardware; None: nobody is asked. ``secrets``: values
    that stand in no line of a log that is kept.
    """

    def __init__(
        self,
        blocks: Sequence[CloudWatchBlock],
        client: Any,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        sagemaker: Any | None = None,
        *,
        secrets: Collection[str] = (),
    ) -> None:
        self._blocks = blocks
        self._client = client
        self._sagemaker = sagemaker
        self._clock = clock
        self._sleep = sleep
        self._secrets = secrets
        self._ahead_s = 0.0
        self._interrupted = False
        self._absent: frozenset[Variant] = frozenset()
        self._silent: frozenset[Publisher] = frozenset()

    def warnings(self, seconds: float | None, *, ahead: bool = True) -> list[str]:
        """The warnings of documentation and of the wave's length; what is not there, and what may not be asked.

        Before a wave CloudWatch is asked, too, what came until then: it decides how long its metrics are waited for.
        """
        described = self._asked_before(ahead=ahead)
        absent = frozenset(variant for variant, each in described.items() if each.absent)
        self._absent = absent if ahead else frozenset()  # an endpoint that is gone since a past window was there then
        refusals = [text for each in described.values() for text in (each.absent, each.denied) if text]
        never = [
            publishers.silence_text(block, self._first_s(block)) for block in self._blocks if self._is_silent(block)
        ]
        return list(dict.fromkeys([*warnings(self._blocks, seconds), *refusals, *never]))

    def instances(self) -> list[InstanceSource]:
        """The variants that the blocks name."""
        if self._sagemaker is None:
            return []
        region = self._client.meta.region_name
        return [VariantInstances(variant, region) for variant in hardware.variants(self._blocks)]

    def begin(self) -> None:
        """Nothing has to watch meanwhile: CloudWatch keeps what it received."""

    def latest(self) -> list[LiveMetric]:
        """Nothing: what it tells is minutes old, so it is asked when the wave is over."""
        return []

    def collect(self, interval: Interval, say: Callable[[str], None]) -> list[ServerMetric]:
        """Every metric over the window; waits until it is complete. Ctrl-C ends the waiting with what there is."""
        waiting = _Waiting(self._blocks, self._client, interval, self._clock)
        waiting.absent_before, waiting.silent = self._absent, self._silent
        announced = waiting.waits.announcement(self._clock() - interval.end)
        say(f"⏳ Fetching server metrics: cloudwatch{announced}...")
        interrupted = False
        try:
            waiting.described = hardware.describe(self._sagemaker, hardware.variants(self._blocks))
            self._wait(waiting, say)
        except KeyboardInterrupt:
            interrupted = True
        self._ahead_s, self._interrupted = waiting.ahead_s, interrupted
        reading = waiting.reading or _nothing(waiting, interval, self._clock())
        similar = {} if interrupted else self._similar(reading)
        return rows(reading, Ending(interrupted, waiting.ahead_s, similar))

    def logs(self, interval: Interval, say: Callable[[str], None]) -> list[ServerLog]:
        """The endpoints' lines, by CloudWatch's clock. Whoever ended the waiting for metrics waits for no log."""
        groups = logs.groups_of(self._blocks)
        if not groups:
            return []
        client = logs.make_client(self._client.meta.region_name)
        moved = interval.moved(self._ahead_s)
        return logs.LogReader(client, moved, say, self._secrets, interrupted=self._interrupted).read(groups)

    def _asked_before(self, *, ahead: bool) -> dict[Variant, Described]:
        """SageMaker's descriptions that come at once: nobody waits for a network that leads nowhere.

        As long CloudWatch is given to say what it never had.
        """
        found: dict[Variant, Described] = {}
        never: list[frozenset[Publisher]] = []
        given = hardware.variants(self._blocks)
        asked = [Thread(target=lambda: found.update(hardware.describe(self._sagemaker, given)), daemon=True)]
        if ahead:
            ask = partial(publishers.silent, self._client, self._blocks, self._clock())
            asked.append(Thread(target=lambda: never.append(ask()), daemon=True))
        for thread in asked:
            thread.start()
        ends = time.monotonic() + LOOK_UP_S
        for thread in asked:
            thread.join(max(0.0, ends - time.monotonic()))
        self._silent = never[0] if never else frozenset()
        return dict(found)

    def _is_silent(self, block: CloudWatchBlock) -> bool:
        """Tells whether a block's metrics are not waited for as long as usual, and nobody has said so yet."""
        of_others = block.variant in self._absent or block.wait is not None
        return not of_others and publisher_of(block.namespace, block.dimensions) in self._silent

    def _first_s(self, block: CloudWatchBlock) -> float:
        """The seconds for which a block is waited for of whose publisher nothing came."""
        now = self._clock()
        waits = Waits(wanted_of(self._blocks, Interval.past(now, now)))
        return waits.first_s(publisher_of(block.namespace, block.dimensions))

    def _wait(self, waiting: _Waiting, say: Callable[[str], None]) -> None:
        interval_s = poll_interval(min(block.period for block in self._blocks))
        said = ""
        while True:
            reading = waiting.poll()
            deadline = waiting.deadline(reading)
            if reading.complete or reading.now >= deadline:
                return
            if waiting.polls > 1 and (text := reading.progress()) not in ("", said):
                said = text
                left = f"waiting {deadline - reading.now:.0f} s at most (Ctrl-C: report what has arrived)"
                say(f"   cloudwatch: {text}; {left}")
            self._sleep(min(interval_s, deadline - reading.now))

    def _similar(self, reading: Reading) -> dict[tuple[str, str], list[dict[str, str]]]:
        """The other places where CloudWatch has what did not come; a few look-ups, for hints only."""
        empty = dict.fromkeys(
            (each.namespace, each.name)
            for each in reading.wanted
            if each.asked and not each.sparse and reading.is_empty(each) and reading.failure(each) is None
        )
        try:
            return {key: similar_dimensions(self._client, *key) for key in list(empty)[:LOOK_UPS]}
        except KeyboardInterrupt:
            return {}


class _Waiting:
    """The polls so far. The window moves once, where CloudWatch's clock is not ours."""

    def __init__(
        self, blocks: Sequence[CloudWatchBlock], client: Any, interval: Interval, clock: Callable[[], float]
    ) -> None:
        self._blocks = blocks
        self._client = client
        self._clock = clock
        self._interval = interval
        self.wanted = wanted_of(blocks, interval)
        self.ahead_s = 0.0
        self.polls = 0
        self._first: float | None = None
        self.reading: Reading | None = None
        self.described: Mapping[Variant, Described] = {}
        self.absent_before: frozenset[Variant] = frozenset()
        self.silent: frozenset[Publisher] = frozenset()
        self._failed: Counter[str] = Counter()
        self._given_up: dict[str, Answer] = {}

    @property
    def waits(self) -> Waits:
        """For how long each metric is waited for, as far as it is known now."""
        return Waits(self.wanted, self.absent_before, self.silent)

    def deadline(self, reading: Reading) -> float:
        """When waiting ends in any case, unix seconds; soon where the first poll already came late enough."""
        published = self._interval.end + max(wanted.lag + wanted.period for wanted in self.wanted)
        if self._interval.of_others and self._first is not None and self._first >= min(reading.ends, published):
            return min(reading.ends, self._first + SECOND_LOOK_S)
        return reading.ends

    def poll(self) -> Reading:
        """Everything asked once more. What is not there was not there when it was asked, however long that took."""
        asked_at = self._clock()
        fetched = self._fetch()
        ahead_s = fetched.ahead_s or 0.0
        if self.polls == 0 and abs(ahead_s) > SAME_CLOCK_S:
            self._move(max(ahead_s, self._fetch().ahead_s or ahead_s))  # a slow answer looks like a clock behind ours
            asked_at = self._clock()
            fetched = self._fetch()
        self.polls += 1
        self._give_up(fetched.answers)
        before = replace(self.reading, before=None) if self.reading else None
        _keep_what_came(fetched.answers, before)
        now = asked_at + self.ahead_s
        self._first = now if self._first is None else self._first
        self.reading = Reading(self.wanted, fetched.answers, self._interval, now, self.waits, before, self.described)
        return self.reading

    def _fetch(self) -> Fetched:
        asked = (query for wanted in self.wanted for query in wanted.queries())
        fetched = fetch(self._client, [query for query in asked if query.id not in self._given_up])
        fetched.answers.update(self._given_up)
        return fetched

    def _give_up(self, answers: Mapping[str, Answer]) -> None:
        """A query that fails poll after poll while others are answered is not waited for, nor asked again."""
        if all(answer.failure is not None for answer in answers.values()):
            return
        for name, answer in answers.items():
            if answer.failure is not None and answer.failure.alone and not answer.failure.final:
                self._failed[name] += 1
                if self._failed[name] >= MOST_FAILURES:
                    self._given_up[name] = Answer(failure=replace(answer.failure, final=True))
                    answer.failure = replace(answer.failure, final=True)

    def _move(self, ahead_s: float) -> None:
        self.ahead_s = ahead_s
        self._interval = self._interval.moved(ahead_s)
        self.wanted = wanted_of(self._blocks, self._interval)


def poll_interval(period: float) -> float:
    """Seconds between polls: some in each period."""
    return min(MOST_POLL_S, max(LEAST_POLL_S, period / POLLS_A_PERIOD))


def _keep_what_came(answers: dict[str, Answer], before: Reading | None) -> None:
    """A call that fails late does not take away what an earlier one brought."""
    for name, answer in answers.items():
        if before is not None and answer.failure is not None and not answer.points:
            answer.points = dict(before.answers[name].points)


def _nothing(waiting: _Waiting, interval: Interval, now: float) -> Reading:
    failure = Failure("the wait was interrupted before CloudWatch answered", final=False)
    answers = {query.id: Answer(failure=failure) for each in waiting.wanted for query in each.queries()}
    return Reading(waiting.wanted, answers, interval, now, waiting.waits)
