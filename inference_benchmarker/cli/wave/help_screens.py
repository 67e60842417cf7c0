"""The screen of ``benchmark`` alone, and ``--help``: the common flags by task. ``--help-all`` is argparse's own."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from inference_benchmarker.exit_codes import OK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.cli.core.arguments import Parser

FIRST_SCREEN = """\
usage: benchmark [COMMAND | URL] [options]

InferenceBenchmarker is a load tester for inference endpoints. It sends requests
at an exact rate, records each one, and tells you whether to trust the numbers.

  benchmark --demo
      try it: 10 s of load on the embedded endpoint, which comes with the tool
  benchmark http://localhost:8080/ping --client-rps 50 --obs-time 30
      measure an HTTP endpoint; a URL ending in /v1 is an OpenAI-compatible LLM
  benchmark capacity --demo
      find the highest rate at which an endpoint meets a limit
  benchmark compare BASE NEW
      compare two runs, with confidence intervals
  benchmark report --format html --output report.html
      write the report of the last run as an HTML page

  benchmark --help             common flags, and all commands
  benchmark --help-all         all flags
  benchmark COMMAND --help     the flags of one command
"""
COMMANDS = """\
commands (each with --help):
  benchmark factory            list or print examples of factories files
  benchmark check              send one request, and show the parsed answer
  benchmark capacity           find the highest rate that meets your limits
  benchmark plan CAPACITY_DIR  compute instances and cost for a target rate
  benchmark report [DIR]       print the report of a run, even if interrupted
  benchmark plot [DIR...]      plot one or more runs on one HTML page
  benchmark compare BASE NEW   compare two runs or sets of runs
  benchmark ab A B             send the same load to two endpoints in turn
  benchmark pareto RUN...      compare tokens/s per user and per GPU, and cost
  benchmark replay FILE        describe recorded traffic, without sending it
  benchmark metrics            collect server metrics for a past period
  benchmark client             measure how much load this machine can send
  benchmark endpoint           run the embedded endpoint on its own
  benchmark hosts COMMAND      prepare, check and clean hosts that send load
  benchmark endpoints clean    remove endpoints left behind by killed commands
  benchmark completion SHELL   print the completion script for bash or zsh
load from the pods of a Kubernetes Job (each with --help):
  benchmark --kubernetes       create the Job with kubectl, and follow it
  benchmark kubernetes fetch   fetch the results of a Job
  benchmark kubernetes clean   remove Jobs that ended or never began
  benchmark manifests          print the manifests, to create the Job yourself
"""
EXIT_CODES = """\
exit codes: 0 VALID, no limit missed; 1 VALID, a limit missed; 2 bad input;
3 INVALID: the results cannot be trusted (the report says why);
130 interrupted
"""
SET_UP = """\
./benchmark, in a clone of the repository, adds:
  ./benchmark --init [--venv PATH] [--with-aiperf]   set up the environment
  ./benchmark --self-test                            test the tool itself
"""
_COMMON = """\
usage: benchmark [--demo | URL | --factories-file FILE] [options]

the endpoint (a URL ending in /v1 is an OpenAI-compatible LLM):
  --demo                    try the tool: 100/s for 10 s to the embedded
                            endpoint, a small server that comes with the tool
  --factories-file FILE     Python file that calls the endpoint
  --body TEXT|@FILE         body of each request to a URL
  --header 'K: V'           header of each request to a URL (repeatable)
  --output-tokens N         maximum number of tokens in an LLM's answer
  --turns N                 conversations of N turns with an LLM
the load (one period of load is called a wave):
  --client-rps R            open loop: R arrivals/s (default: URL 10, LLM 2)
  --concurrency C           closed loop: C requests in flight
  --stages TEXT             changing rates: 50:30s, 50..400:2m
  --obs-time S              send for S seconds (default for a URL: 10)
  --num-requests N          send N requests
  --warmup S                seconds of load before the measurement begins
  --workers W               worker processes (default 1; with --demo 2)
  --hosts LIST              send from other hosts, over ssh
  --request-timeout S       fail a request that takes longer
the limits:
  --slo EXPR                p99<200ms, ttft.p90<1s, success>=0.99 (repeatable)
the server's metrics:
  --endpoint-config FILE    which CloudWatch and Prometheus metrics to read
the output:
  --name TEXT               name of the run in reports
  --output-dir DIR          where to create the run directory (default .tmp)
  --json                    print the summary as JSON
  --quiet                   print no progress
  --verbose                 print the whole report even on a terminal
  --help-all                all flags

"""


def common_help() -> str:
    """``benchmark --help``."""
    return f"{_COMMON}{COMMANDS}\n{EXIT_CODES}"


def add_help(parser: Parser) -> None:
    """Give the parser ``--help`` for the common flags and ``--help-all`` for all of them."""
    parser.add_argument("-h", "--help", action=_Common, help="show the common flags and exit")
    parser.add_argument("--help-all", action="help", help="show all flags of a wave and exit")


class _Common(argparse.Action):
    """Print the common flags, and exit."""

    def __init__(self, option_strings: Sequence[str], **settings: Any) -> None:
        super().__init__(option_strings, "help", nargs=0, default=argparse.SUPPRESS, help=settings["help"])

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Called by argparse where the flag is given."""
        print(common_help(), end="")
        parser.exit(OK)
