"""The server's metrics of a wave's window: who is asked, what is doubtful about it, and printing them with the wave."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.next_commands import next_commands
from inference_benchmarker.cli.core.terminal import print_report, report_width, say, say_nothing, separate
from inference_benchmarker.system.packaged import demo_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from inference_benchmarker.facts.instances import Followed
    from inference_benchmarker.facts.server_metric import Interval, ServerLog, ServerMetric, Source
    from inference_benchmarker.plan.server_limit import ServerLimit
    from inference_benchmarker.wave.run_dir import RunDir
    from inference_benchmarker.wave.wave import Wave
    from server_capacity.metrics.config import MetricsBlock
    from server_capacity.metrics.follower import Follower


def sources_of(
    config: str | None, limits: Sequence[ServerLimit] = (), wait_s: float | None = None, *, afterwards: bool = False
) -> list[Source]:
    """The configuration's sources, asked for the metrics of ``limits``, too; ``wait_s``: see ``blocks_of``.

    ``afterwards``: those that can be asked about the past, so not metrics pages.
    """
    blocks = [block for block in blocks_of(config, limits, wait_s) if not (afterwards and block.is_live_only)]
    if not blocks:
        return []
    from server_capacity.metrics.config import make_sources

    return make_sources(blocks, os.environ)


def blocks_of(config: str | None, limits: Sequence[ServerLimit], wait_s: float | None = None) -> list[MetricsBlock]:
    """The configuration's blocks, and in them the metrics of ``limits``; none without a configuration.

    ``wait_s``: seconds after the wave for which CloudWatch's are waited for; None: as the blocks say.
    """
    if config is None:
        return []
    from server_capacity.metrics.config import load_config, with_limits

    blocks = [block if wait_s is None else block.waiting(wait_s) for block in load_config(config)]
    return with_limits(blocks, limits, config)


def say_warnings(config: str | None, sources: list[Source], seconds: float | None) -> None:
    """Say while it costs nothing yet what will probably bring nothing to a wave of that length (None: nobody knows).

    Only the user knows, so nothing ends. Of the embedded endpoint nothing is said: it started a moment ago.
    """
    warnings = [warning for source in sources for warning in source.warnings(seconds)]
    if config != str(demo_metrics()):
        for warning in warnings:
            say(f"{config}: {warning}")


def follower_of(sources: list[Source], wave_s: float | None = None) -> Follower:
    """Follows the number of instances of whoever the configuration names, in a wave of that length (None: unknown)."""
    from server_capacity.metrics.follower import Follower

    return Follower([each for source in sources for each in source.instances()], wave_s)


def beside(follower: Follower) -> Callable[[RunDir], AbstractContextManager[None]]:
    """It for ``run_wave``: follows while the wave runs, and writes what it counts into the run directory."""
    from inference_benchmarker.wave.files.instances_file import add_line

    return lambda run_dir: follower.following(partial(add_line, run_dir.instances))


def print_with_metrics(
    wave: Wave, sources: list[Source], options: dict[str, Any], follower: Follower | None = None
) -> Wave:
    """Print what the client measured at once, the rest when the server's metrics are there.

    What has come is stored and printed, whatever is pressed meanwhile. ``follower``: what it counted during the wave.
    """
    from inference_benchmarker.engine.processes.interrupts import counting_interrupts

    tell = say_nothing if options["quiet"] else say
    with counting_interrupts():
        if not options["json"]:
            print_report(wave.texts(report_width(), next_commands(wave, options))[0] + "\n")
        wave = with_metrics(wave, sources, follower or follower_of(sources), tell)
        if not options["json"]:
            separate(quiet=options["quiet"])
            print_report(wave.texts(report_width(), next_commands(wave, options))[1])
    return wave


def with_metrics(wave: Wave, sources: list[Source], follower: Follower, tell: Callable[[str], None]) -> Wave:
    """The wave with its server's metrics, waited for and stored; what has come, where an interrupt ends the waiting."""
    from inference_benchmarker.engine.processes.interrupts import counting_interrupts, until_interrupted
    from inference_benchmarker.facts.server_metric import collected
    from inference_benchmarker.wave import writer

    with counting_interrupts():
        interval = wave.interval()
        rows = [until_interrupted(partial(collected, source, interval, tell)) for source in sources]
        metrics = list(chain.from_iterable(rows))
        logs = until_interrupted(lambda: list(_logs(wave, metrics, sources, tell)))
        wave = wave.with_server_metrics(metrics, logs)
        wave = wave.with_instances(until_interrupted(lambda: _followed(interval, metrics, follower)))
        try:
            writer.save_server_metrics(wave)
        except OSError as error:
            reason = error.strerror or str(error)
            say(f"The server's metrics could not be stored ({reason}); only the printed values exist.")
    return wave


def _followed(interval: Interval, metrics: list[ServerMetric], follower: Follower) -> list[Followed]:
    """The instances as they were counted, or by CloudWatch's samples, and what those tell who scale them."""
    from server_capacity.metrics.cloudwatch.instances import by_samples

    return list(by_samples(follower.followed(interval), metrics))


def _logs(
    wave: Wave, metrics: list[ServerMetric], sources: list[Source], tell: Callable[[str], None]
) -> Iterator[ServerLog]:
    """The lines of the server's logs where requests ended in its errors; elsewhere nobody is asked."""
    from inference_benchmarker.facts.server_metric import logged
    from inference_benchmarker.verdict.server import log_since

    since = log_since(wave, wave.summary, metrics)
    if since is not None:
        interval = wave.interval()
        late = replace(interval, start=min(interval.start + since, interval.end))
        for source in sources:
            yield from logged(source, late, tell)
