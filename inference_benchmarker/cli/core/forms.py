"""The forms in which an answer is given, and where it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.cli.core.terminal import print_report
from inference_benchmarker.errors import BenchmarkError

if TYPE_CHECKING:
    from pathlib import Path


TEXT, MARKDOWN, JUNIT, CSV = "text", "markdown", "junit", "csv"
FORMS = (TEXT, MARKDOWN, "html", JUNIT, CSV)


def hand_out(text: str, output: Path | None, form: str) -> None:
    """Print it, or write it to the file that was asked for, in place of what stood there."""
    if output is not None:
        from inference_benchmarker.system.files import write_given

        try:
            write_given(output, text)
        except OSError as error:
            raise BenchmarkError(f"{output}: cannot be written ({error.strerror}).", "Give another --output.") from None
    elif form == TEXT:
        print_report(text)
    else:
        print(text, end="", flush=True)


def no_such_form(folder: Path, form: str, forms: str) -> BenchmarkError:
    """The error of a form that there is only of a run."""
    return BenchmarkError(
        f"{folder}: is the folder of a search or a plan, not of a run, so it has no {form}.", f"--format {forms}."
    )
