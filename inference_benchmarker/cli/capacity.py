"""``benchmark capacity``: the highest rate that keeps the limits."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.arguments import Parser, command_parser
from inference_benchmarker.cli.capacity_flags import CAPACITY_FLAGS, fill_in_demo, make_question, without_others
from inference_benchmarker.cli.config_file import with_config
from inference_benchmarker.cli.embedded import embedded_endpoint
from inference_benchmarker.cli.server_metrics import blocks_of, say_warnings
from inference_benchmarker.cli.terminal import how_far, print_report, say, say_nothing, search_view
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.memory import give_back_large_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from server_capacity.capacity.question import Question
    from server_capacity.capacity.server_side import ServerSide
    from server_capacity.capacity.waves import Waves

_DESCRIPTION = """\
Searches the highest rate below which every limit is kept, with a 95% interval, and confirms the interval's lower end.

  benchmark capacity --demo                              try it out: an embedded endpoint, two minutes
  benchmark capacity --factories-file FILE --slo 'p99<200ms'
"""
_EPILOG = """\
exit codes: 0 found (also where --max-rps keeps every limit), 1 no rate keeps the limits or it cannot tell,
            2 bad input, 3 the client was the limit, 130 interrupted (after what was found)
"""


def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    arguments, problems = without_others(arguments)
    parser = capacity_parser()
    options, found = parser.parsed(arguments)
    options, wrong = with_config(options, parser.flags)
    if options["demo"]:
        fill_in_demo(options)
    question = make_question(options, [*problems, *found, *wrong])
    give_back_large_blocks()
    from server_capacity.capacity.text import to_text

    tell = say_nothing if options["quiet"] else say
    with (
        embedded_endpoint(publish_interval_s=1) if options["demo"] else nullcontext(),
        how_far(quiet=options["quiet"]),
    ):
        folder, data = _searched(question, options, tell)
        if options["json"]:
            print(json.dumps(data, indent=2), flush=True)
        else:
            print_report(to_text(data, str(folder)))
        _draw(folder, tell)  # nobody waits for pictures to read the answer
    return int(data["exit_code"])


def _searched(question: Question, options: dict[str, Any], tell: Callable[[str], None]) -> tuple[Path, dict[str, Any]]:
    """The folder of a search and what stands in its ``capacity.json``; meanwhile nobody scales the endpoint."""
    from server_capacity.capacity.folder import save
    from server_capacity.capacity.run import find_capacity, make_folder
    from server_capacity.keeper.scaling import active_scaling, suspended_scaling

    blocks = blocks_of(options["endpoint_config"], question.plan.server_limits)
    suspends = options["suspend_scaling"]
    refuse([] if suspends else active_scaling(blocks, say))
    server = _server(blocks, question, options, tell)
    folder = make_folder(question)
    with (
        _removed_if_empty(folder),
        suspended_scaling(blocks, folder, say) if suspends else nullcontext() as suspended,
    ):
        data = find_capacity(question, _waves(options, folder, server, tell))
    if suspended is not None:
        data["suspended"] = suspended
        save(folder, data)
    return folder, data


@contextmanager
def _removed_if_empty(folder: Path) -> Iterator[None]:
    """Leave no folder of a search that could not begin."""
    try:
        yield
    except (BenchmarkError, KeyboardInterrupt):
        with suppress(OSError):
            folder.rmdir()
        raise


def _draw(folder: Path, tell: Callable[[str], None]) -> None:
    """Write page and pictures into the folder; without them the answer stands all the same."""
    from visualization.capacity import is_capacity, read_capacities
    from visualization.series import make_figures, write_report

    if not is_capacity(folder):  # the answer says that it could not be stored
        return
    try:
        figures = make_figures((), None, read_capacities([folder], {}))
        for _ in write_report(figures, ("html", "png"), folder, say_nothing, "capacity"):
            pass
    except BenchmarkError as error:
        tell(str(error))


def capacity_parser() -> Parser:
    """Its flags, and its help."""
    return command_parser(
        "benchmark capacity",
        CAPACITY_FLAGS,
        usage="benchmark capacity [--demo | --factories-file FILE] [options]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )


def _server(
    blocks: list[dict[str, Any]], question: Question, options: dict[str, Any], tell: Callable[[str], None]
) -> ServerSide:
    """Whoever is asked about the server; what will probably bring nothing is said now."""
    from server_capacity.capacity.server_side import ServerSide

    server = ServerSide(blocks, os.environ, question.plan.server_limits, tell)
    if not options["quiet"]:
        say_warnings(options["endpoint_config"], server.sources, None)
    return server


def _waves(options: dict[str, Any], folder: Path, server: ServerSide, tell: Callable[[str], None]) -> Waves:
    """Whoever runs the waves, with a view of each."""
    from server_capacity.capacity.waves import Waves

    return Waves(
        folder,
        say=tell,
        live=lambda plan, pilot: search_view(plan, None if pilot is None else pilot.progress, quiet=options["quiet"]),
        server=server,
        announce=say_nothing if options["json"] else lambda line: print_report(f"{line}\n\n"),
    )
