"""A worker that the machine does not let run for a moment."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

from tests.faults.fault import EVERYTHING, Ending, Fault, Stage, wave

if TYPE_CHECKING:
    from tests.bench import Running

LATE_NS = 5_000_000


def pause(running: Running) -> None:
    """Stop the only worker over one due time of a wave of ten arrivals a second."""
    (worker,) = running.workers()
    worker.send_signal(signal.SIGSTOP)
    time.sleep(0.12)
    worker.send_signal(signal.SIGCONT)


def one_hiccup(stage: Stage) -> Ending:
    """A wave with one pause: whoever reads its figures sees what the pause did to them."""
    ending = wave("--client-rps", "10", "--num-requests", "30", act=pause, arrivals=8)(stage)
    found = {finding["code"]: finding["severity"] for finding in ending.finished.summary["findings"]}
    late = [row for row in ending.finished.rows if row["sent"] - row["due"] > LATE_NS]
    if len(late) <= 2:  # the pause's alone: a busy machine makes others
        assert found.get("late_arrivals") == "warning", found
        assert "schedule_lag" not in found, found
    return ending


PAUSES = (
    Fault(
        "hiccup",
        "one pause of the client makes one or two of 30 arrivals late",
        f"{EVERYTHING}, and the wave is VALID; a warning has the figure that the pause moved, with and without it",
        "nothing",
        0,
        one_hiccup,
        slow=True,
    ),
)
