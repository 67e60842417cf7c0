"""The forms in which `benchmark report` gives a run: for pull requests, browsers, pipelines and spreadsheets."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.forms import JUNIT, MARKDOWN, TEXT, no_such_form
from inference_benchmarker.cli.core.terminal import say, say_reservations
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.exit_codes import BAD_INPUT, OK, worst_exit_code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from inference_benchmarker.wave.wave import Wave
    from server_capacity.aiperf.export import AiperfResult


def form_of(wave: Wave, form: str, aiperf: AiperfResult | None = None) -> str:
    """A wave in one of the forms, with what ``aiperf`` measured beside it: where that did not end well, it says so."""
    from server_capacity.aiperf.report import shortfall

    return _FORMS[form](wave, "" if aiperf is None else shortfall(aiperf)) + of_aiperf(aiperf, form)


def table_of_runs(folder: Path, searches: Sequence[Path] = ()) -> tuple[str, int]:
    """A row for each run in a folder, or for the one that it is, as CSV; and the exit code of all of them.

    The runs of A and B lie a folder below, and those that do not count are among them; how they ended counts, too.
    Those of ``searches`` below it lie in theirs.
    """
    from inference_benchmarker.report.csv_rows import UNREADABLE, csv_row, to_csv
    from inference_benchmarker.wave.run_folders import runs_of
    from inference_benchmarker.wave.wave import Wave
    from server_capacity.aiperf.export import AiperfResult
    from visualization.comparison import ab

    rows: list[dict[str, Any]] = []
    experiment = ab.load(folder) if ab.is_ab(folder) else None
    codes = [OK if experiment is None else experiment.cut_code]
    inside = list(_runs_of_searches(searches)) if searches else []
    runs = (inside or runs_of(folder)) if experiment is None else [folder / each.run for each in experiment.sent]
    for path in runs:
        try:
            wave = Wave.load(path)
        except BenchmarkError as error:
            if len(runs) == 1:
                raise
            say(str(error))
            rows.append({"run": str(path), "verdict": UNREADABLE, "exit_code": BAD_INPUT})
        else:
            say_reservations([wave])
            rows.append(csv_row(wave, wave.summary, wave.verdict, str(path)))
            aiperf = None if wave.run_dir is None else AiperfResult.load(wave.run_dir.aiperf)
            codes.append(OK if aiperf is None else aiperf.exit_code)
        codes.append(int(rows[-1]["exit_code"]))
    return to_csv(rows), worst_exit_code(*codes)


def _runs_of_searches(searches: Sequence[Path]) -> Iterator[Path]:
    """The runs in each; one that is gone stands for its own, and one that sent nothing has none."""
    from inference_benchmarker.system.files import is_folder
    from inference_benchmarker.wave.run_folders import runs_of

    for each in searches:
        if not is_folder(each):
            yield each
            continue
        with suppress(BenchmarkError):
            yield from runs_of(each)


def of_aiperf(result: AiperfResult | None, form: str) -> str:
    """The block of what aiperf measured beside the wave, below its text; the page and the tables have their own way."""
    if result is None or form not in (TEXT, MARKDOWN):
        return ""
    from inference_benchmarker.report.markdown import in_a_fence
    from server_capacity.aiperf.report import aiperf_text

    text = aiperf_text(result)
    return "\n" + (in_a_fence(text) if form == MARKDOWN else text)


def of_a_folder(text: str, form: str, folder: Path) -> str:
    """The stored answer of a search, a plan, a proof or a ranking: it has a text, and that in Markdown."""
    if form == TEXT:
        return text
    if form == MARKDOWN:
        from inference_benchmarker.report.markdown import in_a_fence

        return in_a_fence(text)
    raise no_such_form(
        folder,
        form,
        "text and markdown print its answer, csv prints a row for each run in it; html and junit take one run",
    )


def _markdown(wave: Wave, beside: str) -> str:
    from inference_benchmarker.report.markdown import escaped, to_markdown

    first = f"### {escaped(beside)}\n\n" if beside else ""
    return first + to_markdown(wave, wave.summary, wave.verdict, _path(wave))


def _html(wave: Wave, beside: str) -> str:
    from visualization.run_page import run_page

    return run_page(wave, beside)


def _junit(wave: Wave, beside: str) -> str:
    from inference_benchmarker.report.junit import to_junit

    path = _path(wave)
    name = wave.plan.name or ("benchmark" if path is None else path.name)
    return to_junit(wave, wave.summary, wave.verdict, name, wave.text(), beside=beside)


def _path(wave: Wave) -> Path | None:
    return None if wave.run_dir is None else wave.run_dir.path


_FORMS: dict[str, Callable[[Wave, str], str]] = {
    TEXT: lambda wave, _: wave.text(),  # the block below it says so
    MARKDOWN: _markdown,
    "html": _html,
    JUNIT: _junit,
}
