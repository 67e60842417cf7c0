"""Run directories that were changed after their wave was stored: no command believes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from inference_benchmarker.data.json_file import FOREIGN, write_with_digest
from server_capacity.results import capacity_folder as capacity
from server_capacity.results import ranking_folder
from server_capacity.results.ranking_order import ranking
from server_capacity.results.ranking_row import Aim, row_of
from tests.capacities import searched
from tests.faults.fault import SHORT, Ending, Fault

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.faults.fault import Stage

KEPT, LOST = "the files as they are; none of their numbers is reported", "nothing"


def loaded_after(
    change: Callable[[Path], None], *flags: str, command: tuple[str, ...] = ("report",)
) -> Callable[[Stage], Ending]:
    """A wave whose run directory is changed before a command reads it."""

    def play(stage: Stage) -> Ending:
        with stage.server() as asked:
            run = stage.start(*SHORT, *flags, target=asked.url).finish().folder
        change(run)
        again = [run] * (2 if command[0] == "compare" else 1)
        return Ending(stage.start(command[0], *again, *command[1:], text=None).finish(), None, changed=True)

    return play


def plan_loaded_after(*path: str | int, value: float) -> Callable[[Stage], Ending]:
    """A plan of which a value is forged, and its digest made anew, before ``report`` reads it."""

    def play(stage: Stage) -> Ending:
        folder = stage.folder / "searched"
        folder.mkdir()
        capacity.save(folder, searched(endpoint={"instances": 1}))
        price = ("--instance-type", "ml.m5.xlarge", "--price", "ml.m5.xlarge=0.23")
        stage.start(
            "plan", folder, "--target-rps", "1000", *price, "--output-dir", stage.folder / "plans", text=None
        ).finish()
        (folder,) = (stage.folder / "plans").glob("*_plan")
        data = json.loads((folder / "fleet_plan.json").read_text())
        at = data["endpoints"][0]
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value
        write_with_digest(folder / "fleet_plan.json", data)
        return Ending(stage.start("report", folder, text=None).finish(), None, changed=True)

    return play


def ranking_loaded_after(change: Callable[[Path, Path], None]) -> Callable[[Stage], Ending]:
    """A ranking of two searches, to whose folders something happens before ``report`` reads it."""

    def play(stage: Stage) -> Ending:
        folders = [stage.folder / "ranked" / f"{name}_capacity" for name in "ab"]
        rows = []
        for rate, folder in zip((300.0, 250.0), folders, strict=True):
            folder.mkdir(parents=True)
            reported = searched(rate=rate, interval={"low": 0.95 * rate, "high": 1.05 * rate})
            capacity.save(folder, reported)
            rows.append(row_of({"kind": folder.name[0]}, folder.name, reported, None, Aim()))
        ranking_folder.save(stage.folder / "ranked", ranking(rows, Aim()))
        assert stage.start("report", "ranked", text=None).finish().code == 0
        change(*folders)
        return Ending(stage.start("report", "ranked", text=None).finish(), None, changed=True)

    return play


def swapped(one: Path, other: Path) -> None:
    """Put each of two folders in the other's place."""
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def forget_digests(run: Path, *more: str) -> None:
    """Make it a run of an earlier version, which lacks some ``more``."""
    fields = json.loads((run / "summary.json").read_text())
    kept = {key: value for key, value in fields.items() if key not in ("digest", "files", *more)}
    (run / "summary.json").write_text(json.dumps(kept))


def rows(change: Callable[[pa.Table], pa.Table], *, digests: bool = False) -> Callable[[Path], None]:
    """Change the rows of requests.parquet."""

    def apply(run: Path) -> None:
        path = run / "requests.parquet"
        pq.write_table(change(pq.read_table(path)), path)
        if not digests:
            forget_digests(run)

    return apply


def moved(name: str, by_ns: int) -> Callable[[pa.Table], pa.Table]:
    """Move an instant of every request."""

    def apply(table: pa.Table) -> pa.Table:
        place = table.schema.get_field_index(name)
        return table.set_column(place, table.schema.field(name), pc.add(table[name], by_ns))

    return apply


def facts(file: str, **changes: Any) -> Callable[[Path], None]:
    """Change values of a JSON file."""

    def apply(run: Path) -> None:
        held = {**json.loads((run / file).read_text()), **changes}
        (run / file).write_text(json.dumps(held))

    return apply


def emptied_counts(run: Path) -> None:
    """Take every row out of counts.parquet."""
    path = run / "counts.parquet"
    pq.write_table(pq.read_table(path).slice(0, 0), path)
    forget_digests(run)


def without_verdict(run: Path) -> None:
    """Make it a run of an earlier version that stored no verdict."""
    forget_digests(run, "verdict")


def another_verdict(run: Path) -> None:
    """Make it a run that today's rules judged, without a digest and with the other verdict."""
    fields = json.loads((run / "summary.json").read_text())
    valid = fields["verdict"] == "VALID"  # on a busy machine it may be INVALID
    forget_digests(run)
    facts("summary.json", verdict="INVALID" if valid else "VALID", exit_code=3 if valid else 0)(run)


def fault(name: str, happens: str, says: str, play: Callable[[Stage], Ending], *, slow: bool = True) -> Fault:
    """A row: what was changed, and what is said of it."""
    return Fault(name, happens, KEPT, LOST, 2, play, slow=slow, says=says)


STORED = (
    fault(
        "stored-rows-missing",
        "half of the rows of `requests.parquet` are missing, and `report` reads the run",
        "requests of worker 0, but",
        loaded_after(rows(lambda table: table.slice(0, len(table) // 2))),
        slow=False,
    ),
    fault(
        "stored-done-before-sent",
        "requests are done before they were sent in the file that `compare` reads",
        "lies before its sent",
        loaded_after(rows(moved("done", -(10**9))), command=("compare",)),
    ),
    fault(
        "stored-faster",
        "answers came earlier in the file than `summary.json` says, and `plot` reads it",
        "follows from the requests",
        loaded_after(rows(moved("due", -(10**9))), command=("plot", "--plot-format", "html")),
    ),
    fault(
        "stored-rows-changed",
        "`requests.parquet` was written again with other instants after the wave was stored",
        "requests.parquet: was changed after the wave was stored",
        loaded_after(rows(moved("done", 10**6), digests=True)),
    ),
    fault(
        "stored-counts-emptied",
        "`counts.parquet` of a wave with `--records none` is emptied",
        "ok requests, but 0 are stored",
        loaded_after(emptied_counts, "--records", "none"),
    ),
    fault(
        "stored-summary-changed",
        "the success rate in `summary.json` is changed by hand",
        "it was changed after it was stored",
        loaded_after(facts("summary.json", success_rate=0.5), command=("plot", "--plot-format", "html")),
    ),
    fault(
        "stored-plan-changed",
        "the name in `plan.json` is changed by hand",
        "plan.json: was changed after the wave was stored",
        loaded_after(facts("plan.json", name="another")),
    ),
    fault(
        "stored-without-verdict",
        "`summary.json` of an earlier version has no verdict",
        "missing required field `verdict`",
        loaded_after(without_verdict),
    ),
    fault(
        "stored-plan-negative",
        "`fleet_plan.json` is forged to -3 instances, with a digest of that",
        f"fleet_plan.json: {FOREIGN}",
        plan_loaded_after("chosen", "instances", value=-3),
    ),
    fault(
        "stored-plan-no-instances",
        "`fleet_plan.json` is forged to 0 instances, with a digest of that",
        f"fleet_plan.json: {FOREIGN}",
        plan_loaded_after("chosen", "instances", value=0),
    ),
    fault(
        "stored-plan-rate",
        "the rate of an instance in `fleet_plan.json` does not follow from its search",
        "but its search",
        plan_loaded_after("capacities", 0, "low", value=500.0),
    ),
    fault(
        "stored-plan-price",
        "the cost in `fleet_plan.json` does not follow from instances and price",
        "the cost of searched is not that of what is chosen",
        plan_loaded_after("chosen", "cost", "hour", value=0.01),
    ),
    fault(
        "stored-search-changed",
        "the interval of a search below a ranking is changed by hand, and `report` reads the ranking",
        "a_capacity/capacity.json was changed after the search was stored",
        ranking_loaded_after(lambda one, _: facts("capacity.json", interval={"low": 299.0, "high": 301.0})(one)),
        slow=False,
    ),
    fault(
        "stored-searches-swapped",
        "two searches below a ranking are swapped",
        "a_capacity does not match its digest",
        ranking_loaded_after(swapped),
    ),
    fault(
        "stored-verdict-changed",
        "`summary.json` is changed to INVALID and its digest taken out",
        "follows from the requests",
        loaded_after(another_verdict),
    ),
    fault(
        "stored-instances-added",
        "the counts of another run's instances are put beside a wave",
        "instances.jsonl: was added after the wave was stored",
        loaded_after(lambda run: (run / "instances.jsonl").touch()),
    ),
)
