"""``benchmark ab``: two endpoints under the same load in turn, and which of them is faster."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from inference_benchmarker.cli.capacity.searching import check_one, removed_if_empty
from inference_benchmarker.cli.compare.ab_flags import ab_parser, asked_for
from inference_benchmarker.cli.compare.ab_report import (
    say_closing,
    say_what_is_missing,
    say_what_was_invalid,
    wave_line,
    why_aborted,
    why_nothing,
)
from inference_benchmarker.cli.compare.compare import print_comparison, write_files
from inference_benchmarker.cli.core.terminal import has_terminal, how_far, live_view, passing, say, say_nothing
from inference_benchmarker.cli.wave.exporting import exporting
from inference_benchmarker.errors import BenchmarkError, NoWaveError
from inference_benchmarker.exit_codes import OK
from inference_benchmarker.system.memory import give_back_large_blocks
from inference_benchmarker.words.redact import HEADERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.cli.compare.ab_flags import AbRequest
    from inference_benchmarker.cli.wave.exporting import Export
    from inference_benchmarker.wave.wave import Wave
    from visualization.comparison.ab import Experiment

    Waves = dict[str, list[Wave]]


def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    if not arguments:
        ab_parser().print_help()
        return OK
    asked = asked_for(arguments)
    give_back_large_blocks()
    from inference_benchmarker.wave.run_dir import make_stamped_folder
    from visualization.comparison.ab import KIND, Experiment

    with exporting(asked.exports, quiet=asked.options.quiet) as export:
        for side in asked.plans:
            _check(asked, side)
        folder = make_stamped_folder(asked.plans["A"].output_dir, KIND)
        experiment = Experiment(folder, asked.what, asked.repeats, asked.seed, asked.limits, asked.options.strict)
        with removed_if_empty(folder):
            waves = _sent(experiment, asked, export.named(asked.plans["A"].name or folder.name))
        with how_far(quiet=asked.options.quiet):
            return _tell(experiment, asked, waves)


def _check(asked: AbRequest, side: str) -> None:
    """Send one request to a side; one that does not answer is waited for as long as a wave would wait in the end."""
    plan = asked.plan(side, asked.repeats)  # a round that is not sent: no prompt of a wave is sent before it
    passing(f"Sending {side} one request…", quiet=asked.options.quiet)
    _hand_on_headers(asked, side)
    check_one(replace(plan, request_timeout_s=plan.request_timeout_s or plan.drain_timeout_s))


def _sent(experiment: Experiment, asked: AbRequest, export: Export) -> Waves:
    """The waves that count, of each side, until all are sent, a side is given up, or somebody interrupts."""
    from inference_benchmarker.engine.hosts.logins import keeping_logins
    from inference_benchmarker.engine.processes.interrupts import counting_interrupts
    from visualization.comparison.ab import order

    tell = say_nothing if asked.options.quiet else say
    waves: Waves = {side: [] for side in asked.plans}
    with counting_interrupts() as interrupts, keeping_logins():
        for number, side in order(asked.repeats, asked.seed):
            while not (interrupts.count or experiment.is_given_up):
                wave: Wave | None = None
                try:
                    wave = _wave(experiment, asked, side, number, export)
                    counts = _taken_in(experiment, waves, side, number, wave, tell=tell)
                except KeyboardInterrupt:  # before it began
                    experiment.interrupted = True
                    return waves
                except (BenchmarkError, NoWaveError) as error:
                    # a full disk, a process that ends: what was measured is still worth it
                    if wave is None and not experiment.sent:
                        raise
                    why = error.event if isinstance(error, NoWaveError) else str(error)
                    experiment.given_up = f"{side}: {why.rstrip('.')}"
                    return waves
                if counts:
                    break
        experiment.interrupted = interrupts.count > 0
    return waves


def _taken_in(
    experiment: Experiment, waves: Waves, side: str, number: int, wave: Wave, *, tell: Callable[[str], None]
) -> bool:
    """Note a wave, and tell whether it counts. So many that do not count, and its side is given up.

    One that was aborted ends all: its endpoint is dead, or what ``--abort-on`` says came true.
    """
    counts = wave.verdict.valid and not (wave.interrupted or wave.aborted)
    experiment.add(side, number, wave, counts=counts)
    if counts:  # also where ab.json cannot be written any more
        waves[side].append(wave)
    left_out = sum(each.side == side and not each.counts for each in experiment.sent)
    if wave.aborted:
        experiment.aborted = f"{side} {why_aborted(wave)}"
    elif left_out > experiment.repeats:
        experiment.given_up = f"{side} had {left_out} INVALID waves"
    experiment.save(None, None)
    tell(wave_line(experiment, side, number, wave, counts=counts))
    if experiment.given_up:
        say_what_was_invalid(wave)
    return counts


def _wave(experiment: Experiment, asked: AbRequest, side: str, number: int, export: Export) -> Wave:
    """Send a wave."""
    from inference_benchmarker.engine.launch import run_wave

    _hand_on_headers(asked, side)
    plan = replace(asked.plan(side, number), output_dir=experiment.folder / side)
    quiet = asked.options.quiet or not has_terminal()  # elsewhere a line a wave is enough
    foot = f"Round {number + 1} of {experiment.repeats}, {side}: {asked.what[side]}"
    view = export.follow(plan, live_view(plan, quiet=quiet, foot=foot), f"{side}: {asked.what[side]}")
    wave = run_wave(plan, view, beside=export.beside())
    export.finish(wave)
    return wave


def _hand_on_headers(asked: AbRequest, side: str) -> None:
    """Put the secret headers of a side where its processes find them."""
    headers = asked.headers[side]
    os.environ.pop(HEADERS, None)
    if headers is not None:
        os.environ[HEADERS] = headers


def _tell(experiment: Experiment, asked: AbRequest, waves: Waves) -> int:
    """Store and print the outcome, and give the exit code. One that cannot be stored is printed, and makes it 3."""
    from visualization.comparison import report

    found = experiment.compare(waves) if all(waves.values()) else None
    try:
        experiment.save(found, experiment.cut_code if found is None else found.exit_code)
    except BenchmarkError as error:
        say(str(error))
        experiment.not_stored = str(error)
    if found is None:
        nothing = why_nothing(experiment)
        say(nothing)
        write_files(
            asked.options, lambda: report.nothing_to_markdown(nothing), lambda: report.nothing_to_junit(nothing)
        )
        say(f"Folder: {experiment.folder}")
        return experiment.cut_code
    found = replace(found, cut=experiment.cut)
    say_what_is_missing(experiment)
    print_comparison(found, as_json=asked.options.json)
    write_files(asked.options, lambda: report.to_markdown(found), lambda: report.to_junit(found))
    say_closing(experiment)
    return found.exit_code
