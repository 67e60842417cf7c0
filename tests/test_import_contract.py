"""Who may import whom, and what may stand where: the tree shows the sentence it was built by."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

from grimp import build_graph

from tests import house
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PACKAGES = ("inference_benchmarker", "server_capacity", "client_capacity", "visualization")
FILES = sorted(path.relative_to(ROOT) for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
CLI = "inference_benchmarker/cli/"
PATCHED = (
    "inference_benchmarker/engine/worker/",
    "inference_benchmarker/engine/primary/",
    "inference_benchmarker/clients/",
    "inference_benchmarker/engine/locust/runtime.py",
    "inference_benchmarker/engine/locust/sockets.py",
    "inference_benchmarker/engine/locust/statistics.py",
    "inference_benchmarker/engine/locust/patched.py",
)
ENVIRONMENT = (  # who hands the environment on, reads its secrets to hide them, or tells a library by it
    CLI,
    "inference_benchmarker/engine/processes/children.py",
    "inference_benchmarker/system/host.py",
    "inference_benchmarker/system/files.py",
    "inference_benchmarker/system/followed.py",
    "inference_benchmarker/system/memory.py",
    "inference_benchmarker/engine/check.py",
    "inference_benchmarker/engine/pods/attendant.py",
    "inference_benchmarker/engine/hosts/agent.py",
    "inference_benchmarker/engine/hosts/shipping.py",
    "inference_benchmarker/engine/primary/stats_files.py",
    "inference_benchmarker/engine/worker/__main__.py",
    "inference_benchmarker/engine/worker/check.py",
    "inference_benchmarker/engine/worker/target.py",
)
OF_HOSTS = (  # who signals and samples processes, by their ids; `check` has one of its own, a worker is itself one
    "inference_benchmarker/engine/hosts/",
    "inference_benchmarker/engine/processes/leftovers.py",
    "inference_benchmarker/engine/check.py",
    "inference_benchmarker/engine/pods/attendant.py",
    "inference_benchmarker/engine/worker/",
)
LIGHT = {  # what tells whether arguments are good
    *(f"inference_benchmarker.{name}" for name in ("errors", "exit_codes", "version")),
    *(
        f"inference_benchmarker.system.{name}"
        for name in ("files", "followed", "given", "memory", "packaged", "progress")
    ),
    *(f"inference_benchmarker.words.{name}" for name in ("redact", "text", "units", "wording")),
    "server_capacity.aiperf.options",
}
LATE = {
    "far_screen",
    "key_pilot",
    "live_limits",
    "live_lines",
    "onlooker",
    "panel",
    "progress",
}  # imported when a wave begins
OF_FLAGS = ("flags", "_plan")  # flags, and the plan that they describe
COMMANDS = [
    path for path in FILES if str(path).startswith(CLI) and not path.stem.endswith(OF_FLAGS) and path.stem not in LATE
]
HEAVY = {"boto3", "botocore", "pandas", "matplotlib", "plotly", "rich", "scipy"}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree_of(path)))


def places(found: Callable[[ast.AST], bool], *, but: tuple[str, ...] = ()) -> list[str]:
    """Where something stands, outside the files in which it may."""
    return [
        f"{path}:{getattr(node, 'lineno', 0)}"
        for path in FILES
        if not str(path).startswith(but or ("-",))
        for node in nodes_of(path)
        if found(node)
    ]


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def imports(node: ast.AST) -> set[str]:
    """The first part of every module that a statement imports."""
    if isinstance(node, ast.Import):
        return {alias.name.split(".")[0] for alias in node.names}
    return {(node.module or "").split(".")[0]} if isinstance(node, ast.ImportFrom) else set()


def at_top(tree: ast.Module) -> Iterator[ast.stmt]:
    """Statements that run when a module is imported, those for the type checker aside."""
    for statement in tree.body:
        if isinstance(statement, (ast.Try, ast.With)):
            yield from statement.body
        elif not isinstance(statement, ast.If):
            yield statement


def test_the_contract_of_the_project_is_kept() -> None:
    program = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_the_picture_of_the_house_is_the_house() -> None:
    assert house.PICTURE.read_text(encoding="utf-8") == house.picture(), "python -m tests.house"


def test_every_arrow_of_the_picture_runs_down() -> None:
    storey = {room: number for number, rooms in enumerate(house.contract()) for room in rooms}
    drawn = house.arrows(house.import_graph(), house.contract())
    assert len(drawn) >= len(house.contract()) - 1  # every storey stands on another
    assert all(storey[a] < storey.get(b, len(storey)) for a, b in drawn)


def test_a_process_id_is_its_hosts_own() -> None:
    engine = {path for path in FILES if str(path).startswith("inference_benchmarker/engine/")}
    asks = {"os.kill", "os.killpg", "os.getsid", "psutil.Process", "psutil.process_iter"}
    found = {
        str(path)
        for path in engine
        for node in nodes_of(path)
        if dotted(node) in asks or (isinstance(node, ast.Attribute) and node.attr == "pid")
    }
    assert {path for path in found if not path.startswith(OF_HOSTS)} == set()


def test_only_the_command_line_prints_parses_and_exits() -> None:
    assert places(lambda n: isinstance(n, ast.Call) and dotted(n.func) == "print", but=(CLI,)) == []
    assert places(lambda n: "argparse" in imports(n), but=(CLI, "inference_benchmarker/engine/locust/runtime.py")) == []
    assert places(lambda n: isinstance(n, ast.Call) and dotted(n.func) in {"sys.exit", "exit"}, but=(CLI,)) == []


def test_the_environment_is_read_where_it_is_handed_on() -> None:
    reads = {"os.environ", "os.getenv", "os.environb", "os.putenv"}
    assert places(lambda n: dotted(n) in reads, but=ENVIRONMENT) == []


def test_no_modules_import_each_other_in_a_circle_not_even_for_their_types() -> None:
    graph = build_graph(PACKAGES[0], *PACKAGES[1:], exclude_type_checking_imports=False, cache_dir=None)
    order = TopologicalSorter({module: graph.find_modules_directly_imported_by(module) for module in graph.modules})
    order.prepare()  # CycleError names the modules of a circle


def test_the_files_of_a_run_directory_are_the_stores() -> None:
    names = {"plan.json", "requests.parquet", "timeline.csv", "summary.txt", "client.csv", "server_metrics.json"}
    named = places(lambda n: isinstance(n, ast.Constant) and n.value in names, but=("inference_benchmarker/wave/",))
    assert named == []
    parquet = places(lambda n: isinstance(n, ast.Import) and any(a.name == "pyarrow.parquet" for a in n.names))
    homes = [
        "inference_benchmarker/recording/parquet.py",
        "inference_benchmarker/wave/files/counts_file.py",
        "inference_benchmarker/wave/files/identity.py",
        "inference_benchmarker/wave/files/requests_file.py",
    ]  # a user's own
    assert [place.split(":")[0] for place in parquet] == homes


def test_locust_and_gevent_are_imported_in_the_programs_they_patch_only() -> None:
    patching = {"locust", "gevent", "geventhttpclient", "flask"}
    assert places(lambda n: bool(imports(n) & patching), but=PATCHED) == []
    assert places(lambda n: "locust" in imports(n))  # the check itself sees what it looks for


def test_geventhttpclient_is_what_the_clients_are_made_of_and_nothing_else() -> None:
    assert places(lambda n: "geventhttpclient" in imports(n), but=("inference_benchmarker/clients/",)) == []


def test_what_is_heavy_is_imported_where_it_is_needed() -> None:
    loaded = {(str(path), name) for path in FILES for statement in at_top(tree_of(path)) for name in imports(statement)}
    assert {(path, name) for path, name in loaded if name in HEAVY} == set()
    assert any(name == "numpy" for _, name in loaded)  # the check itself sees what is loaded


def test_a_command_starts_with_what_is_light() -> None:
    beside = {
        (path.stem, node.module or "")
        for path in COMMANDS
        for node in at_top(tree_of(path))
        if isinstance(node, ast.ImportFrom) and imports(node) & set(PACKAGES)
        if not (node.module or "").startswith("inference_benchmarker.cli.")
    }
    assert {(command, name) for command, name in beside if name not in LIGHT} == set()
    assert ("ab", "inference_benchmarker.errors") in beside  # the check itself sees what is loaded


def test_what_is_pure_does_not_open_or_wait() -> None:
    pure = tuple(f"inference_benchmarker/{room}/" for room in ("plan", "records", "facts", "summary", "verdict"))
    calls = {"open", "print", "input", "sleep", "now", "today", "monotonic", "monotonic_ns", "time_ns", "read_text"}
    others = tuple(str(path) for path in FILES if str(path) not in (*pure, "inference_benchmarker/verdict/verdict.py"))
    assert places(lambda n: isinstance(n, ast.Call) and dotted(n.func).split(".")[-1] in calls, but=others) == []


def test_no_test_module_imports_another() -> None:
    """What several need lies in a module of its own."""
    others = re.compile(r"^ *(?:from|import) tests\.(?:\w+\.)*test_", re.MULTILINE)
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").rglob("*.py"))}
    assert [str(path.relative_to(ROOT)) for path, text in texts.items() if others.search(text)] == []
