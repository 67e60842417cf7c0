"""The table of faults, and what the docs say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.bench import ROOT
from tests.faults.answers import ANSWERS
from tests.faults.disk import DISKS
from tests.faults.environment import ENVIRONMENT
from tests.faults.gate import GATE
from tests.faults.output import OUTPUT
from tests.faults.pauses import PAUSES
from tests.faults.pods import PODS
from tests.faults.port import PORT
from tests.faults.processes import PROCESSES
from tests.faults.searches import SEARCHES
from tests.faults.servers import SERVERS
from tests.faults.stored import STORED
from tests.faults.user_code import USER_CODE

if TYPE_CHECKING:
    from tests.faults.fault import Fault

SECTIONS: dict[str, tuple[Fault, ...]] = {
    "Output and interrupts": OUTPUT,
    "Processes": PROCESSES,
    "The primary's port": PORT,
    "Disks": DISKS,
    "Endpoints": SERVERS,
    "Answers": ANSWERS,
    "The user's code": USER_CODE,
    "The machine": (*PAUSES, *ENVIRONMENT),
    "Stored runs": STORED,
    "Searches": SEARCHES,
    "The pods of a cluster": PODS,
    "The gate of the GitHub Action": GATE,
}
FAULTS = tuple(fault for faults in SECTIONS.values() for fault in faults)
DOCS = ROOT / "docs" / "reference" / "faults.md"
_HEAD = """# What a wave survives

Whatever happens, five things hold:

- the exit code is the one of this table;
- the stored verdict is the printed one, and `benchmark report DIR` prints it again;
- the ledger and the server's log agree: the server saw every reported request, none was sent twice, and only the
  part of a lost process is missing;
- no process and no temporary file is left;
- no secret of the environment is in a file or in the output, no matter which process printed it. [Secrets](secrets.md)
  says which values these are, and in which encodings they are found.

Each row is a fault that is injected: `python -m tests.faults` injects all of them, the test suite the quick ones. The
exit code, what is left and the secrets are judged in every row. The verdict and the ledger are judged where a wave was
sent and stored. Elsewhere the rows are judged as follows:

- a command that is refused or ends before its wave: nothing was sent, and no verdict is stored;
- a stored run that is read (see "Stored runs"): nothing of it is printed as an answer; the message says what is wrong;
- searches and the pods of a cluster: the row checks its own answer, and the waves below it are not judged once more;
- the gate of the GitHub Action sends no wave: the row checks its exit code and its message.

Exit codes 0 and 1 are the verdict's; -9 means that the command was killed.
"""


def docs() -> str:
    """The page that tells of every fault."""
    return "\n".join([_HEAD, *(_section(title, faults) for title, faults in SECTIONS.items())])


def _section(title: str, faults: tuple[Fault, ...]) -> str:
    rows = (f"| {each.happens} | {each.kept} | {each.lost} | {each.code} |" for each in faults)
    head = ("| what happens | what is kept | what is lost at most | exit code |", "|---|---|---|---|")
    return "\n".join([f"## {title}", "", *head, *rows, ""])
