"""README and docs/ held against the tool: their commands and files are executed, their tables compared."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.cli.compare import compare_parser
from inference_benchmarker.cli.endpoint_flags import ENDPOINT_FLAGS
from inference_benchmarker.cli.plot_flags import PLOT
from inference_benchmarker.cli.wave import wave_parser
from inference_benchmarker.embedded.running import listen
from inference_benchmarker.facts.client_use import HostUse, ProcessUse, Sample, WorkerUse
from inference_benchmarker.records.columns import SCHEMA
from inference_benchmarker.summary import timeline
from inference_benchmarker.verdict import verdict
from inference_benchmarker.verdict.client import endpoint as endpoint_findings
from inference_benchmarker.verdict.client import limits_found as bottleneck
from inference_benchmarker.verdict.client import network as network_findings
from inference_benchmarker.verdict.client import worker as worker_findings
from inference_benchmarker.verdict.server import hardware_remarks, request_remarks, time_remarks
from inference_benchmarker.verdict.server import hardware_use as uses
from tests.bench import OF_A_BUSY_MACHINE
from visualization.bars import all_bars

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DOCS = ROOT / "docs"
EXECUTED = (README, DOCS / "factories.md", DOCS / "clients.md")
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md")])
LAUNCHER_FLAGS = {"--init", "--venv", "--with-aiperf", "--self-test"}
NOT_HERE = ("git clone ", "cd inference-benchmarker", "./benchmark --self-test", "pip install ")
ENDPOINT_LINE = "benchmark endpoint --port 8080"
PORTS = ("8080", "8081")
BUILT_ON_RUNS = ("benchmark --compare", "benchmark --plot")
SIDE_BY_SIDE = 4
JUDGES = (verdict, worker_findings, network_findings, endpoint_findings)
RUN_DIR = re.compile(r"\.tmp/\d{8}T\d{6}Z_benchmark")
SHORTER = (
    (re.compile(r"--obs-time \d+"), "--obs-time 0.5"),
    (re.compile(r"^\./benchmark --demo$"), "./benchmark --demo --obs-time 0.5"),
    (re.compile(r"--num-requests \d+"), "--num-requests 25"),
    (re.compile(r"--warmup \d+"), "--warmup 0.2"),
    (re.compile(r"^obs-time = \d+", re.MULTILINE), "obs-time = 0.5"),
    (re.compile(r"duration_s=\d+"), "duration_s=0.5"),
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page. ``promised`` is the text block after it, if one follows at once.

    ``named`` is the last file named in the line above it.
    """

    named: str
    language: str
    text: str
    promised: str

    @property
    def file_name(self) -> str | None:
        """The file a block is to be saved as: its first line says so; JSON has no comments, so the line above does."""
        if self.language == "json":
            return self.named
        named = re.match(r"# (\w+\.(?:py|toml))\n", self.text)
        return named and named[1]

    @property
    def commands(self) -> list[str]:
        """The commands of a shell block or of a workflow's steps, a line each."""
        if self.language == "yaml":
            return re.findall(r"- run: (.+)", self.text)
        lines = self.text.replace("\\\n", "").splitlines()
        return [line for line in lines if line and not line.startswith("#")]

    @property
    def exit_code(self) -> int:
        """The exit code that a comment promises, else 0."""
        promised = re.search(r"^# exit code (\d+)", self.text, re.MULTILINE)
        return int(promised[1]) if promised else 0


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    fence = r"(?:`([\w.]+)`[^`\n]*\n\n)?^```(\w+)\n(.*?)^```\n(?:\s*^```text\n(.*?)^```\n)?"
    found = re.findall(fence, page.read_text(), re.MULTILINE | re.DOTALL)
    return [Block(*groups) for groups in found]


@dataclass
class Result:
    """What one command did."""

    code: int
    out: str
    err: str

    @property
    def findings(self) -> list[str]:
        """The codes of the findings in the report."""
        told = re.findall(r"^ +(?:⚠️ CLIENT BOTTLENECK detected:|✗|!) (\w+)[,:]", self.out, re.MULTILINE)
        return told + re.findall(r"^ +(?:base|new): .*INVALID, (\w+)", self.out, re.MULTILINE)

    @property
    def machine_was_slow(self) -> bool:
        """Whether this machine was too busy for the schedule or a time limit, which says nothing of a page."""
        if self.code == verdict.EXIT_INVALID:
            return not OF_A_BUSY_MACHINE.isdisjoint(self.findings)
        return (
            self.code == verdict.EXIT_MISSED and "slo_missed: success" not in self.out and "slo_missed" in self.findings
        )

    def check(self, expected: int, promised: str) -> None:
        """Hold the exit code and the output against what the page promises."""
        slow = self.machine_was_slow
        assert self.code == expected or slow, f"exit code {self.code}: {self.out}{self.err}"
        told = [" ".join(line.split()) for line in (self.out + self.err).splitlines()]
        whole = " ".join(told)  # where a line is wrapped depends on its numbers
        for line in promised.splitlines():
            words = " ".join(line.split())
            if words in ("VALID", "INVALID"):
                assert any(told_line.split(" ")[0] == words for told_line in told) or slow, told
                continue
            fixed = [part.strip() for part in re.split(r"[\d.,]+|…", words)]
            for part in fixed:
                if len(part) > 3:
                    assert part in whole, f"{part!r} is not in {told}"


@dataclass
class Newcomer:
    """Somebody who follows a page in an empty folder: what they saved, exported and started."""

    folder: Path
    command: list[str]
    ports: tuple[int, ...]
    exports: list[str] = field(default_factory=list)
    endpoints: list[subprocess.Popen[str]] = field(default_factory=list)
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(SIDE_BY_SIDE))
    running: list[tuple[Future[Result], Block]] = field(default_factory=list)

    def __post_init__(self) -> None:
        launcher = self.folder / "benchmark"
        launcher.write_text(f'#!/bin/sh\nexec {shlex.join(self.command)} "$@"\n')
        launcher.chmod(0o755)

    @property
    def environment(self) -> dict[str, str]:
        """As in a new terminal, with the command on PATH."""
        path = os.pathsep.join([str(self.folder), str(Path(sys.executable).parent), os.environ["PATH"]])
        return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}

    def follow(self, block: Block) -> None:
        """Save, run or start what a block shows."""
        if block.file_name is not None:
            (self.folder / block.file_name).write_text(self.adapt(block.text))
        elif block.language == "python":
            self.begin([sys.executable, "-c", self.adapt(block.text)], block)
        elif block.language in ("bash", "yaml"):
            for line in block.commands:
                self.enter(line, block)

    def enter(self, line: str, block: Block) -> None:
        """Enter one line of a shell block."""
        if line.startswith("export "):
            self.exports.append(self.adapt(line))
        elif line.startswith("benchmark endpoint "):
            self.start_endpoint(line)
        elif line.startswith("benchmark factory "):  # a later line builds on it, but it on none
            self.run(self.shell(line)).check(block.exit_code, block.promised)
        elif not line.startswith(NOT_HERE):
            if not line.startswith("benchmark --") or line.startswith(BUILT_ON_RUNS):  # what a later line builds on
                self.finish()
            self.begin(self.shell(line), block)
            if line.startswith("./benchmark"):
                self.finish()

    def shell(self, line: str) -> list[str]:
        """What runs a line after all that was exported."""
        return ["sh", "-c", "; ".join([*self.exports, self.adapt(line)])]

    def adapt(self, text: str) -> str:
        """The same, shorter, with this test's ports and the first wave's run directory."""
        for pattern, replacement in SHORTER:
            text = pattern.sub(replacement, text)
        if RUN_DIR.search(text):
            text = RUN_DIR.sub(str(min((self.folder / ".tmp").iterdir())), text)
        ports = dict(zip(PORTS, map(str, self.ports), strict=True))
        return re.sub("|".join(ports), lambda found: ports[found[0]], text)

    def begin(self, line: list[str], block: Block) -> None:
        """Start a command; most of a wave is waiting, so some run side by side."""
        self.running.append((self.pool.submit(self.run, line), block))

    def finish(self) -> None:
        """Wait for what runs and check it."""
        running, self.running = self.running, []
        for result, block in running:
            result.result().check(block.exit_code, block.promised)

    def run(self, line: list[str]) -> Result:
        """Run a command to its end."""
        done = subprocess.run(
            line, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=60, check=False
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def start_endpoint(self, line: str = ENDPOINT_LINE) -> None:
        """What the page has run in another terminal."""
        endpoint = subprocess.Popen(
            self.adapt(line).split(), cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, text=True
        )
        self.endpoints.append(endpoint)
        assert endpoint.stdout is not None
        said = endpoint.stdout.readline()
        assert any(f":{port} " in said for port in self.ports), said

    def leave(self) -> None:
        """Close the other terminals."""
        self.pool.shutdown()
        for endpoint in self.endpoints:
            endpoint.terminate()
            endpoint.communicate(timeout=10)


@pytest.fixture
def newcomer(tmp_path: Path, command: list[str]) -> Iterator[Newcomer]:
    with listen(0) as first, listen(0) as second:
        ports = (first.getsockname()[1], second.getsockname()[1])
    newcomer = Newcomer(tmp_path, command, ports)
    yield newcomer
    newcomer.leave()


@pytest.mark.timeout(300)
def test_the_readme_can_be_followed(newcomer: Newcomer) -> None:
    for block in blocks(README):
        newcomer.follow(block)
    newcomer.finish()
    assert len(newcomer.endpoints) == len(PORTS)


@pytest.mark.timeout(300)
def test_the_page_on_factories_can_be_followed(newcomer: Newcomer) -> None:
    page = DOCS / "factories.md"
    assert ENDPOINT_LINE in page.read_text()
    newcomer.start_endpoint()
    for block in blocks(README):
        if block.file_name == "my_endpoint.py":
            newcomer.follow(block)
    for block in blocks(page):
        newcomer.follow(block)
    newcomer.finish()


@pytest.mark.timeout(300)
def test_the_page_on_clients_can_be_followed(newcomer: Newcomer) -> None:
    assert ENDPOINT_LINE in (DOCS / "clients.md").read_text()
    newcomer.start_endpoint()
    for block in blocks(DOCS / "clients.md"):
        newcomer.follow(block)
    newcomer.finish()


def wave_flags() -> dict[str, str]:
    """The flags of a wave as the command line has them, with what stands behind each."""
    flags = {}
    for action in wave_parser()._actions:
        flag = action.option_strings[-1]
        flags[flag] = f"{flag} {action.metavar}" if action.metavar else flag
    return flags


def endpoint_flags() -> set[str]:
    """The flags of `benchmark endpoint`."""
    return {flag for group in ENDPOINT_FLAGS.values() for flag, *_ in group}


def test_the_table_of_flags_is_the_command_lines() -> None:
    rows = re.findall(r"^\| (`--.+?`) \|", README.read_text(), re.MULTILINE)
    documented = [flag for row in rows for flag in re.findall(r"`(.+?)`", row)]
    assert sorted(documented) == sorted(wave_flags().values())


@pytest.mark.parametrize("page", [*EXECUTED, DOCS / "metrics.md", ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_no_flag_is_invented(page: Path) -> None:
    comparison = {flag for action in compare_parser()._actions for flag in action.option_strings}
    plot = {flag for group in PLOT.values() for flag, *_ in group}
    known = {*LAUNCHER_FLAGS, *wave_flags(), *endpoint_flags(), *comparison, *plot, "--compare", "--plot"}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page.read_text())) <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", linked.read_text(), re.MULTILINE)
            slugs = [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]
            assert anchor in slugs, target


def section(heading: str) -> str:
    """One section of docs/metrics.md."""
    text = (DOCS / "metrics.md").read_text()
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, heading
    return found[1]


def first_cells(text: str) -> list[str]:
    """The names in the first column of the tables of a text."""
    return [name for row in re.findall(r"^\| (`.+?) \|", text, re.MULTILINE) for name in re.findall(r"`(.+?)`", row)]


def test_every_finding_is_documented() -> None:
    source = "".join(Path(str(module.__file__)).read_text() for module in JUDGES)
    codes = set(re.findall(r'Finding\(\s*"(\w+)"', source)) | bottleneck.SERVER_CODES
    table = re.findall(r"^\| `(\w+)` \| (.*?) \|", section("Verdict"), re.MULTILINE)
    assert {code for code, _ in table if code.islower()} == codes
    for code, severity in table:
        name = code.upper() if code in bottleneck.SERVER_CODES else f'"{code}"'
        sometimes = " or " in severity or "," in severity
        assert sometimes or re.search(rf'{name},\s*"{severity}"', source), code
    printed = section("Verdict").split("else `client` with one")[1].split("CLIENT BOTTLENECK")[0]
    assert set(re.findall(r"`(\w+)`", printed)) == bottleneck.CLIENT_CODES


def test_every_remark_is_documented() -> None:
    modules = (time_remarks, hardware_remarks, request_remarks)
    source = "".join(Path(str(module.__file__)).read_text() for module in modules)
    resources = {uses.CPU, uses.GPU, uses.MEMORY, uses.GPU_MEMORY, uses.DISK, uses.KV_CACHE}
    codes = set(re.findall(r'Remark\(\s*"(\w+)"', source)) | {hardware_remarks.code_of(each) for each in resources}
    table = (DOCS / "server_metrics.md").read_text().partition("## What they say")[2]
    assert set(first_cells(table)) == codes


def test_every_field_of_a_plot_is_documented() -> None:
    documented = first_cells(section("Plots"))
    of_source = dict(re.findall(r"^\| `(aiperf|client)` \| (.+?) \|$", section("Plots"), re.MULTILINE))
    for known in all_bars(()):
        assert known.field in documented if known.source == "locust" else f"`{known.field}`" in of_source[known.source]


def test_the_clients_evidence_is_documented() -> None:
    assert first_cells(section("Client")) == [known.name for known in fields(WorkerUse)]
    for known in (*fields(HostUse), *fields(ProcessUse)):
        assert f"`{known.name}`" in section("Client"), known.name
    for name in Sample._fields:
        assert f"`{name}`" in section("client.csv"), name


def test_the_columns_of_requests_are_documented() -> None:
    assert sorted(first_cells(section("requests.parquet"))) == sorted(SCHEMA.names)
    for names, kind in re.findall(r"^\| (`.+?) \| (.+?) \|", section("requests.parquet"), re.MULTILINE):
        for name in re.findall(r"`(\w+)`", names):
            column = SCHEMA.field(name)
            assert ("nullable" in kind) == (column.nullable and name not in ("label", "outcome")), name
            stored = str(column.type)
            documented = kind.removesuffix(", nullable")
            assert documented.split(" ")[0] in stored, (name, stored)


def test_the_columns_of_the_timeline_are_documented() -> None:
    assert first_cells(section("timeline.csv")) == timeline.COLUMNS.split(",")


def test_the_files_of_a_wave_are_documented(newcomer: Newcomer) -> None:
    flags = ["--client-rps", "20", "--obs-time", "1.2", "--warmup", "0.2", "--sample-client-hw", "--json"]
    result = newcomer.run(["./benchmark", "--demo", *flags])
    (run_dir,) = (newcomer.folder / ".tmp").iterdir()
    table = README.read_text().split("## The run directory")[1].split("## ")[0]
    documented = {name.rstrip("/") for name in first_cells(table)}
    assert {path.name for path in run_dir.iterdir()} | {"server_metrics.json", "aiperf"} == documented
    _check_summary(json.loads(result.out))
    for column in (run_dir / "client.csv").read_text().splitlines()[0].split(","):
        assert f"`{column}`" in section("client.csv"), column


def _check_summary(summary: dict[str, Any]) -> None:
    assert sorted(first_cells(section("summary.json"))) == sorted(summary)
    page = (DOCS / "metrics.md").read_text()
    nested = [summary[key] for key in ("window", "environment", "rates", "latency", "warmup", "client")]
    for key in {key for part in nested for key in part}:
        assert f"`{key}`" in page or f".{key}`" in page, key
    assert set(summary["ledger"]) - {"workers", "in_flight"} <= set(re.findall(r"\w+", section("The ledger")))
