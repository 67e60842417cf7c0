"""Make the truths of a set, search its endpoints, sum up what was found, compare it, calibrate intervals by it.

``truths choose --count 208``; ``search choose --time 60 --results FILE``; ``table FILE``; ``compare FILE OTHER``;
``calibrate FILE``: the ``ENDS`` of ``server_capacity/search/curve.py``, from searches made with those of today;
``drifts --time 120 --count 40``: slow-downs that are found, and that are not there;
``lateness choose --time 60``: what stretches in which the client was late leave of the answer.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from tests.performance.capacity.family import calibrating, drifts, lateness, searches, sets, tables


def main() -> None:
    """One of the seven."""
    parser = argparse.ArgumentParser(prog="python -m tests.performance.capacity.family", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    of_set = argparse.ArgumentParser(add_help=False)
    of_set.add_argument("set", choices=sets.NAMES)
    of_set.add_argument("--commit", default="", help="the commit that froze the method; for the sealed set")
    of_set.add_argument("--minutes", type=float, default=1e9, metavar="N", help="what is not made by then is left out")
    truths = commands.add_parser("truths", parents=[of_set])
    truths.add_argument("--count", type=int, default=200, metavar="N")
    search = commands.add_parser("search", parents=[of_set])
    search.add_argument("--time", type=float, default=60.0, metavar="S")
    search.add_argument("--searches", type=int, default=4, metavar="N", help="of each endpoint (default: 4)")
    search.add_argument("--results", type=Path, required=True, metavar="FILE", help="what is in it is kept")
    for each in ("table", "calibrate"):
        commands.add_parser(each).add_argument("files", type=Path, nargs="+")
    compare = commands.add_parser("compare")
    compare.add_argument("file", type=Path)
    compare.add_argument("other", type=Path)
    late = commands.add_parser("lateness", parents=[of_set])
    late.add_argument("--time", type=float, default=60.0, metavar="S")
    late.add_argument("--most-rate", type=float, default=3000.0, metavar="R", help="endpoints above it are left out")
    drift = commands.add_parser("drifts")
    drift.add_argument("--time", type=float, default=120.0, metavar="S")
    drift.add_argument("--count", type=int, default=40, metavar="N")
    options = parser.parse_args()
    ends = time.monotonic() + 60 * getattr(options, "minutes", 0)
    if options.command == "truths":
        for line in sets.make(options.set, options.count, options.commit):
            print(line, flush=True)
            if time.monotonic() > ends:
                break
    elif options.command == "search":
        searches.search(sets.known(options.set, options.commit), options.time, options.searches, options.results, ends)
    elif options.command in ("table", "calibrate"):
        found = [each for file in options.files for each in searches.read(file)]
        if options.command == "table":
            print(tables.table(found), tables.slow_downs(found), sep="\n\n")
        else:
            print(*calibrating.calibration(found), sep="\n")
    elif options.command == "lateness":
        reported = lateness.reported(sets.known(options.set, options.commit), options.time, options.most_rate)
        print(lateness.table(list(reported)))
    elif options.command == "drifts":
        print(drifts.line(list(drifts.pairs(range(options.count), options.time)), options.time))
    else:
        print(tables.comparison(searches.read(options.file), searches.read(options.other)))


main()
