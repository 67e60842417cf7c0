"""The command line, the only place for argparse, printing and exit codes: a file for each command.

Nothing heavy is imported before the arguments are known to be good.
"""

from __future__ import annotations

from inference_benchmarker.cli.dispatch import main

__all__ = ["main"]
