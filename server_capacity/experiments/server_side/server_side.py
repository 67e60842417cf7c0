"""The server's side of a search: who is asked for metrics and instances, wave after wave, and when it is waited for.

Metrics pages tell at once and are read after each wave. CloudWatch is up to two minutes late: it is asked once, for all
waves, when the last one is over.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from inference_benchmarker.engine.processes.interrupts import until_interrupted
from inference_benchmarker.facts.server_metric import collected
from inference_benchmarker.wave import writer
from inference_benchmarker.wave.files.instances_file import add_line
from server_capacity.experiments.measurements.evidence import name_of
from server_capacity.experiments.server_side.disturbance import Standing
from server_capacity.experiments.server_side.server_attachment import all_waves
from server_capacity.metrics.cloudwatch.instances import by_samples
from server_capacity.metrics.config import make_sources
from server_capacity.metrics.follower import Follower

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from inference_benchmarker.engine.processes.interrupts import Interrupts
    from inference_benchmarker.facts.server_metric import ServerMetric, Source
    from inference_benchmarker.plan.server_limit import ServerLimit
    from inference_benchmarker.wave.run_dir import RunDir
    from inference_benchmarker.wave.wave import Wave
    from server_capacity.experiments.measurements.confirmed import Confirmed
    from server_capacity.experiments.measurements.evidence import SearchEvidence
    from server_capacity.metrics.config import MetricsBlock

LATE = ("cloudwatch",)
"""Streams whose values come minutes later."""


class ServerSide:
    """Asks the sources of checked blocks about the waves of a search.

    ``say`` takes sentences on what is waited for. Without blocks there is nobody to ask, and nothing happens.
    """

    def __init__(
        self,
        blocks: Sequence[MetricsBlock],
        environment: Mapping[str, str],
        limits: Sequence[ServerLimit] = (),
        say: Callable[[str], None] = print,
    ) -> None:
        self.limits = tuple(limits)
        late = [block for block in blocks if block.stream in LATE]
        self._prompt = make_sources([block for block in blocks if block not in late], environment)
        self._late = make_sources(late, environment)
        self._late_blocks = late if limits else ()
        self._say = say
        self._follower = Follower([], None)
        self._standing = Standing()

    @property
    def sources(self) -> list[Source]:
        """Everybody who is asked."""
        return [*self._prompt, *self._late]

    @property
    def least_s(self) -> float:
        """The length of a confirmation wave in which a whole bucket lies of every limit's metric, seconds."""
        return 2.0 * max((block.bucket_s for block in self._late_blocks), default=0.0)

    @property
    def waits(self) -> bool:
        """Tells whether limits on metrics that come late are open until ``wait``: an answer before it is PENDING."""
        return bool(self.limits and self._late)

    def beside(self, seconds: float | None) -> Callable[[RunDir], AbstractContextManager[None]]:
        """For ``run_wave``, beside a wave of that length: pages are watched, and instances are counted."""
        instances = [each for source in self.sources for each in source.instances()]
        self._follower = Follower(instances, seconds)
        return self._beside

    @contextmanager
    def _beside(self, run_dir: RunDir) -> Iterator[None]:
        for source in self.sources:
            source.begin()
        with self._follower.following(partial(add_line, run_dir.instances)):
            yield

    def moved(self) -> str:
        """Why the stretch that runs now counts for nothing: its instances changed; empty where they stand still."""
        return self._standing.see(self._follower.latest())

    def read(self, wave: Wave) -> Wave:
        """The wave with what is there at once, stored; to be called after each wave, before the next one begins."""
        if not self.sources:
            return wave
        rows = self._collected(wave, self._prompt)
        followed = self._follower.followed(wave.interval())
        return self._stored((wave.with_server_metrics(rows) if rows else wave).with_instances(followed))

    def wait(self, waves: Sequence[Wave], interrupts: Interrupts) -> list[Wave]:
        """The waves with what comes late, stored. Ctrl-C ends the waiting, of all of them, with what there is."""
        if not self._late:
            return list(waves)
        found: list[Wave] = []
        for wave in waves:
            if interrupts.count:
                return [*found, *waves[len(found) :]]
            rows = self._collected(wave, self._late)
            renewed = wave.with_server_metrics(rows)
            found.append(self._stored(renewed.with_instances(by_samples(renewed.instances, rows))))
        return found

    def _collected(self, wave: Wave, sources: Sequence[Source]) -> list[ServerMetric]:
        interval = wave.interval()
        return list(chain.from_iterable(collected(source, interval, self._say) for source in sources))

    def _stored(self, wave: Wave) -> Wave:
        try:
            writer.save_server_metrics(wave)
        except OSError as error:
            self._say(f"The server's metrics could not be stored ({error.strerror or error}).")
        return wave


def waited(
    server: ServerSide, explored: SearchEvidence, confirmed: Sequence[Confirmed], interrupts: Interrupts
) -> list[Confirmed]:
    """Wait for what comes late of all waves: they have it from now on. An interrupt ends it with what there is.

    Where a limit is waited for that interrupts the search itself: its answer may change with what is missing.
    """
    waves = all_waves(explored, confirmed)
    complete = until_interrupted(lambda: server.wait(waves, interrupts), interrupts) or waves
    explored.interrupted = explored.interrupted or (server.waits and interrupts.count > 0)
    by_name = {name_of(wave): wave for wave in complete}
    explored.waves = [by_name[name_of(wave)] for wave in explored.waves]
    return [replace(each, wave=by_name[name_of(each.wave)]) for each in confirmed]
