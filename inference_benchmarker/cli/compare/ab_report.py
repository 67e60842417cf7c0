"""The words of ``benchmark ab`` beside its comparison, while it goes on and afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.cli.compare.compare import print_comparison, write_files
from inference_benchmarker.cli.core.forms import JUNIT, MARKDOWN, TEXT, hand_out, no_such_form
from inference_benchmarker.cli.core.terminal import say
from inference_benchmarker.words.wording import duration_text, pluralize

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path

    from inference_benchmarker.wave.wave import Wave
    from visualization.comparison.ab import Experiment
    from visualization.comparison.comparison import Comparison

_FORMS = "text, markdown and junit give the comparison, csv a row for each wave"


def wave_line(experiment: Experiment, side: str, number: int, wave: Wave, *, counts: bool) -> str:
    """A line on a wave that is over."""
    from inference_benchmarker.report.headline import outcome

    time = wave.summary.response_time or wave.summary.latency
    stats = [] if time is None else [f"p{percent} {duration_text(time.percentile(percent))}" for percent in (50, 99)]
    codes = [finding.code for finding in wave.verdict.findings if finding.severity in ("invalid", "missed")]
    left_out = [] if counts else ["interrupted"] * wave.interrupted + ["it does not count"]
    text = ", ".join([outcome(wave.summary, wave.verdict), *codes, *stats, *left_out])
    return f"Round {number + 1} of {experiment.repeats}, {side}: {text}"


def say_what_was_invalid(wave: Wave) -> None:
    """Say what made a wave INVALID, and what to do about it."""
    for each in wave.verdict.findings:
        if each.severity == "invalid":
            say(f"{each.code}: {each.compared}. {each.advice}")


def why(experiment: Experiment) -> str:
    """The reason for which waves are missing."""
    if experiment.cut_off:
        return "Cut off, or still running"
    if experiment.interrupted:
        return "Interrupted"
    if experiment.aborted:
        return f"Aborted ({experiment.aborted})"
    return f"INVALID: {experiment.given_up or experiment.not_stored}"


def why_nothing(experiment: Experiment) -> str:
    """The sentence on one that has no wave of a side."""
    return f"{why(experiment)}: no wave of {experiment.missing} is usable, so nothing can be compared."


def why_aborted(wave: Wave) -> str:
    """The reason for which a wave was aborted, in words."""
    return next((each.measured for each in wave.verdict.findings if each.code == "aborted"), "aborted")


def say_what_is_missing(experiment: Experiment) -> None:
    """Say, above the comparison, that it has not all its waves."""
    if experiment.cut_code:
        say(f"{why(experiment)}: the comparison uses what was measured by then.")


def say_closing(experiment: Experiment) -> None:
    """Say how many waves are left out, and where all of them are."""
    if left_out := sum(not each.counts for each in experiment.sent):
        say(f"{pluralize(left_out, 'wave', 'waves')} left out: INVALID, aborted or interrupted.")
    say(f"Folder: {experiment.folder}")


def print_again(experiment: Experiment, form: str, output: Path | None, *, as_json: bool) -> int:
    """Print a folder of A and B again in one of its forms, and give the exit code."""
    if experiment.missing:
        return _print_nothing(experiment, form, output, as_json=as_json)
    found = experiment.compare(experiment.read())
    say_what_is_missing(experiment)
    if form == TEXT and output is None:
        print_comparison(found, as_json=as_json)
    else:
        hand_out(_rendered(found, form, experiment.folder), output, form)
    say_closing(experiment)
    return found.exit_code


def print_fetched(folder: Path, options: Namespace) -> int:
    """Print a folder whose command ran elsewhere, and has said all but the comparison; write the files asked for."""
    from visualization.comparison import ab, report

    experiment = ab.load(folder)
    if experiment.missing:
        nothing = why_nothing(experiment)
        write_files(options, lambda: report.nothing_to_markdown(nothing), lambda: report.nothing_to_junit(nothing))
        return experiment.cut_code
    found = experiment.compare(experiment.read())
    print_comparison(found, as_json=options.json)
    write_files(options, lambda: report.to_markdown(found), lambda: report.to_junit(found))
    return found.exit_code


def _print_nothing(experiment: Experiment, form: str, output: Path | None, *, as_json: bool) -> int:
    """Print why nothing can be compared, as the command did, and give the exit code of how it ended."""
    if as_json:  # whoever reads JSON finds none
        say(f"{why_nothing(experiment)}\nFolder: {experiment.folder}")
        return experiment.cut_code
    from visualization.comparison.report import nothing_to_junit, nothing_to_markdown

    forms = {TEXT: lambda text: f"{text}\n", MARKDOWN: nothing_to_markdown, JUNIT: nothing_to_junit}
    if form not in forms:
        raise no_such_form(experiment.folder, form, _FORMS)
    hand_out(forms[form](why_nothing(experiment)), output, form)
    say(f"Folder: {experiment.folder}")
    return experiment.cut_code


def _rendered(found: Comparison, form: str, folder: Path) -> str:
    from visualization.comparison.report import to_junit, to_markdown, to_text

    forms = {TEXT: to_text, MARKDOWN: to_markdown, JUNIT: to_junit}
    if form not in forms:
        raise no_such_form(folder, form, _FORMS)
    return forms[form](found)
