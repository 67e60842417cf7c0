"""README and docs/ held against the tool: their commands and files are executed, their tables compared."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest

from inference_benchmarker.cli.compare.ab_flags import OF_A_SIDE, AbRequest, asked_for
from inference_benchmarker.cli.kubernetes import ab_in_pods
from inference_benchmarker.cli.wave.wave import wave_of
from inference_benchmarker.embedded.running import listen
from inference_benchmarker.exit_codes import INVALID, MISSED
from inference_benchmarker.facts.client_samples import Sample
from inference_benchmarker.facts.client_use import HostUse, ProcessUse, WorkerUse
from inference_benchmarker.records.columns import SCHEMA
from inference_benchmarker.summary import timeline
from inference_benchmarker.verdict.client import bottleneck
from inference_benchmarker.verdict.finding import FindingCode
from inference_benchmarker.verdict.server.platform_metrics import RemarkCode
from tests import flags_page, original
from tests.bench import OF_A_BUSY_MACHINE
from tests.case import case
from tests.person import Person
from visualization.figures.bars import all_bars

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DOCS = ROOT / "docs"
SITE = [DOCS / page for page in re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)]
OTHERS = [ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", ROOT / "client_capacity" / "README.md"]
PAGES = [README, *OTHERS, *sorted(DOCS.rglob("*.md"))]
METRICS, FINDINGS, FILES = (DOCS / "reference" / f"{name}.md" for name in ("metrics", "findings", "files"))
LAUNCHER_FLAGS = {"--init", "--venv", "--with-aiperf", "--self-test", "--compare"}
OTHER_PROGRAMS_FLAGS = {
    *("--cli-input-json", "--embeddings", "--quick", "--rerank", "--worker"),
    *("--cpus", "--from", "--network", "--no-cache-dir", "--rm", "--target", "--ulimit", "--user"),
    *("--easy-way", "--held-out", "--processes", "--results", "--scenario", "--searches"),
    *("--enable-prompt-tokens-details", "--kind", "--kinds", "--most-rate", "--stream-interval", "--truths"),
    *(
        "--follow",
        "--for",
        "--ignore-not-found",
        "--from-file",
        "--from-literal",
        "--output",
        "--patch",
        "--selector",
        "--tail",
        "--timeout",
        "--type",
    ),
}
NOT_HERE = ("git clone ", "cd inference-benchmarker", "./benchmark --self-test", "pip install ")
ENDPOINT_LINE = "benchmark endpoint --port 8080"
PORTS = ("8080", "8081", "8082", "8083", "8084", "8085", "8086")
BUILT_ON_RUNS = ("benchmark compare", "benchmark plot", "benchmark pareto")
SIDE_BY_SIDE = 4
MOST_ENTRIES = 130
FENCE = re.MULTILINE | re.DOTALL
RUN_DIR = re.compile(r"\.tmp/(?:\d{8}T\d{6}Z|<timestamp>)_benchmark")
SHORTER = (
    (re.compile(rf"^{ENDPOINT_LINE}$"), f"{ENDPOINT_LINE} --publish-interval 1"),
    (re.compile(r'"Period": 10'), '"Period": 1'),
    (re.compile(r"--obs-time \d+"), "--obs-time 0.5"),
    (re.compile(r"(?<=\d):\d+s(?=[,\"])"), ":0.3s"),
    (
        re.compile(r'p99<300ms(?=" --endpoint-config)'),
        "p99<1ms",
    ),  # a shorter wave overloads nothing
    (re.compile(r"--num-requests \d+"), "--num-requests 25"),
    (re.compile(r"--warmup \d+"), "--warmup 0.2"),
    (re.compile(r"^obs-time = \d+", re.MULTILINE), "obs-time = 0.5"),
    (re.compile(r"duration_s=\d+"), "duration_s=0.5"),
    (re.compile(r"^(benchmark capacity .*)$"), r"\1 --time 6 --start-rps 100 --max-rps 100"),
    (re.compile(r"^(benchmark report .*--format .*)$"), r"\1 || [ $? -eq 3 ]"),  # a busy machine made the run INVALID
    (re.compile(r"^(benchmark pareto .*)$"), r"\1 || [ $? -eq 3 ]"),  # as above
    (re.compile(r"^\./benchmark --demo$"), "./benchmark --demo --obs-time 0.5 --warmup 0.2 --sample-client-hw"),
)


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@dataclass(frozen=True)
class Block:
    """A fenced block of a page. ``promised`` is the text block after it, if one follows at once.

    ``named`` is the last file named in the line above it.
    """

    page: str
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
    return [Block(page.name, *groups) for groups in found]


@dataclass
class Result:
    """What one command did."""

    code: int
    out: str
    err: str

    @property
    def findings(self) -> list[str]:
        """The codes of the findings in the report."""
        reported = re.findall(r"^ +(?:⚠️ CLIENT BOTTLENECK detected:|✗|!) (\w+)[,:]", self.out, re.MULTILINE)
        return reported + re.findall(r"^ +(?:base|new): .*INVALID, (\w+)", self.out, re.MULTILINE)

    @property
    def machine_was_slow(self) -> bool:
        """Whether this machine was too busy for the schedule or a time limit, which says nothing of a page."""
        if self.code == INVALID and "the client was the limit" in self.out:
            return True
        if self.code == INVALID:
            return not OF_A_BUSY_MACHINE.isdisjoint(self.findings)
        return self.code == MISSED and "slo_missed: success" not in self.out and "slo_missed" in self.findings

    def check(self, block: Block) -> None:
        """Hold the exit code and the output against what the page promises."""
        slow = self.machine_was_slow
        assert self.code == block.exit_code or slow, f"{block.page}, exit code {self.code}: {self.out}{self.err}"
        lines = [" ".join(line.split()) for line in (self.out + self.err).splitlines()]
        whole = " ".join(lines)  # where a line is wrapped depends on its numbers
        for line in block.promised.splitlines():
            words = " ".join(line.split())
            if words in ("VALID", "INVALID"):
                assert any(line.split(" ")[0] == words for line in lines) or slow, lines
                continue
            fixed = [part.strip() for part in re.split(r"[\d.,]+|…", words)]
            for part in fixed:
                if len(part) > 3:
                    assert part in whole, f"{block.page}: {part!r} is not in {lines}"


@dataclass
class Newcomer:
    """Somebody who follows the pages in one folder: what they saved, exported, started and read."""

    folder: Path
    command: list[str]
    ports: tuple[int, ...]
    exports: list[str] = field(default_factory=list)
    endpoints: list[subprocess.Popen[str]] = field(default_factory=list)
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(SIDE_BY_SIDE))
    running: list[tuple[Future[Result], Block]] = field(default_factory=list)
    results: list[tuple[Block, Result]] = field(default_factory=list)
    searched: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        launcher = self.folder / "benchmark"
        launcher.write_text(f'#!/bin/sh\nexec {shlex.join(self.command)} "$@"\n')
        launcher.chmod(0o755)

    @property
    def environment(self) -> dict[str, str]:
        """As in a new terminal, with the command on PATH."""
        path = os.pathsep.join([str(self.folder), str(Path(sys.executable).parent), os.environ["PATH"]])
        return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}

    def read(self, page: Path) -> None:
        """Follow a page from its beginning, in a new terminal; what it starts may go on beside the next page."""
        self.exports.clear()
        for block in blocks(page):
            self.follow(block)

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
            self.run(self.shell(line)).check(block)
        elif not line.startswith(NOT_HERE) and line not in self.searched:
            self.searched |= {line} if line.startswith("benchmark capacity --demo") else set()
            if line.startswith(BUILT_ON_RUNS):
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
        for future, block in running:
            result = future.result()
            result.check(block)
            self.results.append((block, result))

    def run(self, line: list[str]) -> Result:
        """Run a command to its end; one that is steered has somebody at a terminal."""
        if "--interactive" in line[-1]:
            return self.steer(line)
        done = subprocess.run(
            line, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=120, check=False
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def steer(self, line: list[str]) -> Result:
        """Press a key once the rate is shown, and end the wave as planned."""
        person = Person()
        streams: dict[str, Any] = {"stdin": person.slave, "stderr": person.slave, "stdout": subprocess.PIPE}
        with subprocess.Popen(line, cwd=self.folder, env=self.environment, text=True, **streams) as running:
            try:
                person.see("Target ")
                person.press("2")
                person.see("Target 100/s")
                time.sleep(0.5)
                person.press("q")
                out, _ = running.communicate(timeout=120)
            finally:
                running.terminate()  # it has no end of its own
        person.leave()
        return Result(running.returncode, out, person.screen)

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
    with ExitStack() as stack:
        ports = tuple(stack.enter_context(listen(0)).getsockname()[1] for _ in PORTS)
    newcomer = Newcomer(tmp_path, command, ports)
    yield newcomer
    newcomer.leave()


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_readme_and_every_page_can_be_followed(newcomer: Newcomer) -> None:
    newcomer.read(README)
    newcomer.finish()  # the first tutorial has another my_endpoint.py
    for page in SITE:
        newcomer.read(page)
    newcomer.finish()
    assert len(newcomer.endpoints) == len(PORTS)
    _check_latencies(newcomer)
    _check_files(min((newcomer.folder / ".tmp").iterdir()))


def _check_latencies(newcomer: Newcomer) -> None:
    """What the page on Python prints of the latencies: their number, and milliseconds of a wave of half a second."""
    (printed,) = [result.out for block, result in newcomer.results if "describe()" in block.text]
    described = dict(re.findall(r"^(\w+%?) +([\d.]+)$", printed, re.MULTILINE))
    assert float(described["count"]) == 25
    assert 20 <= float(described["min"]) <= float(described["mean"]) <= float(described["max"]) < 60_000


def test_a_page_that_sends_to_the_endpoint_says_how_to_start_it() -> None:
    for page in SITE:
        text = "".join(block.text for block in blocks(page) if block.language != "text")
        if re.search(r"--client-rps|--concurrency|--config|run_wave\(", text):
            assert (
                re.search("`benchmark endpoint --port 8080[^`]*`", page.read_text())
                or "\nbenchmark endpoint " in page.read_text()
            )


def test_no_file_is_shown_twice() -> None:
    """The pages are followed side by side, in one folder; the README's own short file is the one exception."""
    names = Counter(block.file_name for page in SITE for block in blocks(page) if block.file_name)
    assert max(names.values()) == 1, names


def test_a_page_takes_from_my_endpoint_what_the_readmes_and_the_tutorials_both_have() -> None:
    wanted = [
        found
        for page in SITE
        for found in re.findall(r"^from my_endpoint import ([\w, ]+\w)", page.read_text(), re.MULTILINE)
    ]
    assert set(wanted) == {"invoke_factory"}


def test_a_command_that_a_page_only_shows_is_executed_on_another() -> None:
    """But for searches, of which a page has the transcript, aiperf, and ab, whose own tests run it."""
    shown = {line for each in _everything() if each.language == "text" for line in each.commands}
    executed = {line for each in _everything() if each.language != "text" for line in each.commands}
    commands = {line for line in shown - executed if re.match(r"(\./)?benchmark ", line)}
    assert [line for line in commands if "aiperf" not in line and not line.startswith("benchmark ab ")] == []


def test_a_wave_that_a_page_only_shows_could_be_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it takes hours, or is a step of a workflow, or of A and B: its flags and their values are read."""
    for name in ("here/my_endpoint.py", "here/new/my_endpoint.py", "here/request.json", "old/my_endpoint.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    monkeypatch.chdir(tmp_path / "here")
    executed = {line for block in _everything() for line in block.commands if block.language in ("bash", "yaml")}
    fences = (found for page in (README, *SITE) for found in re.findall(r"^```\w*\n(.*?)^```", page.read_text(), FENCE))
    lines = {line.strip().removeprefix("$ ") for text in fences for line in text.replace("\\\n", "").splitlines()}
    shown = [line for line in lines - executed if re.match(r"benchmark (ab |--factories-file )", line)]
    words = [shlex.split(line, comments=True)[1:] for line in shown if "--aiperf" not in line]
    reads = {"ab": asked_for, "ab --kubernetes": ab_in_pods.ab}
    kinds = [f"{rest[0]} --kubernetes" if "--kubernetes" in rest else rest[0] for rest in words]
    read = [reads[kind](rest[1:]) if kind in reads else wave_of(rest) for kind, rest in zip(kinds, words, strict=True)]
    assert sum(isinstance(each, AbRequest) for each in read) >= 3


def _everything() -> list[Block]:
    return [block for page in (README, *SITE) for block in blocks(page)]


def test_the_page_of_flags_is_the_command_lines() -> None:
    assert flags_page.PAGE.read_text() == flags_page.flags_page(), "python -m tests.flags_page"


def test_the_page_of_flags_begins_with_flags_of_a_wave() -> None:
    before, _, after = flags_page.PAGE.read_text().partition("\n| `--")
    assert len(before.split()) < 60
    assert after.startswith("factories-file FILE`")


def test_the_page_of_flags_has_every_command() -> None:
    reported = re.findall(r"^  benchmark (--\w+|\w+)", str(flags_page.parser_of("").epilog), re.MULTILINE)
    assert {command.split(" ")[0] for command in flags_page.COMMANDS} == {"", *reported}


@pytest.fixture(scope="module")
def known_flags() -> set[str]:
    """Every flag of every command, those of the original tool, and those of other programs that the pages name."""
    ours = {flag for command in flags_page.COMMANDS for flag in flags_page.flags_of(command)}
    ours |= {f"{flag}-{side}" for flag in OF_A_SIDE for side in "ab"}
    return ours | LAUNCHER_FLAGS | OTHER_PROGRAMS_FLAGS | {*original.FLAGS, *original.METRICS_FLAGS}


def test_the_changelog_is_short_enough_to_be_read() -> None:
    """A merge that keeps the lines of both sides brings entries back that were summed up."""
    for version in re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]:
        entries = re.findall(r"^- .*", version, re.MULTILINE)
        assert len(entries) <= MOST_ENTRIES
        assert len(entries) == len(set(entries))


def test_no_flag_is_invented(known_flags: set[str]) -> None:
    pages = [page for page in PAGES if page.name != "CONTRIBUTING.md"]
    found = {page.name: set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page.read_text())) - known_flags for page in pages}
    assert {name: flags for name, flags in found.items() if flags} == {}


def test_every_page_stands_in_the_navigation_once() -> None:
    assert sorted(SITE) == sorted(DOCS.rglob("*.md"))


def test_every_example_is_documented() -> None:
    examples = {str(path.relative_to(ROOT / "factories")) for path in (ROOT / "factories").glob("*/factories_*.py")}
    assert set(first_cells((DOCS / "reference" / "examples.md").read_text())) == examples
    assert f"[{len(examples)} examples to copy]" in README.read_text()


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            if "://" not in target:
                with case(_name(page), target):
                    check_link(page, *target.split("#", 1))


def check_link(page: Path, path: str, anchor: str = "") -> None:
    """Hold the target of a link against what is there; the site has only the pages of ``docs/``."""
    linked = (page.parent / path).resolve() if path else page
    assert linked.exists()
    assert linked.is_relative_to(DOCS) or not page.is_relative_to(DOCS), "is not in the site"
    if anchor:
        headings = re.findall(r"^#+ (.+)$", linked.read_text(), re.MULTILINE)
        assert [anchor, anchor] in [_anchors(heading) for heading in headings]


def _anchors(heading: str) -> list[str]:
    """The anchor of a heading, as code hosts make it and as the site does: they differ in rows of hyphens."""
    slug = re.sub(r"[^\w -]", "", heading.lower())
    return [slug.replace(" ", "-"), re.sub(r"[ -]+", "-", slug.encode("ascii", "ignore").decode()).strip("-")]


def section(page: Path, heading: str) -> str:
    """One section of a page."""
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", page.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None, heading
    return found[1]


def first_cells(text: str) -> list[str]:
    """The names in the first column of the tables of a text."""
    return [name for row in re.findall(r"^\| (`.+?) \|", text, re.MULTILINE) for name in re.findall(r"`(.+?)`", row)]


def test_every_finding_is_documented() -> None:
    table = re.findall(r"^\| `(\w+)` \| (.*?) \|", section(FINDINGS, "The findings"), re.MULTILINE)
    assert [code for code, _ in table] == list(get_args(FindingCode))
    found = severities()
    for code, severity in table:
        sometimes = " or " in severity or "," in severity
        assert sometimes or found[code] == {severity}, code
    printed = (
        section(FINDINGS, "Which side was the bottleneck")
        .split("else `client` with one")[1]
        .split("CLIENT BOTTLENECK")[0]
    )
    assert set(re.findall(r"`(\w+)`", printed)) == bottleneck.CLIENT_CODES


def severities() -> dict[str, set[str]]:
    """The severities that each code has in the sources; a code that no one yields is not there."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "inference_benchmarker" / "verdict").rglob("*.py"):
        for code, severity in re.findall(r'\bFinding\(\s*"?(\w+)"?,\s*"?(\w*)', path.read_text()):
            found.setdefault(code.lower(), set()).add(severity)
    return found


def test_every_finding_is_found_somewhere() -> None:
    assert set(severities()) == set(get_args(FindingCode))


def test_every_remark_is_documented() -> None:
    table = (DOCS / "reference" / "server-metrics.md").read_text().partition("## What they say")[2]
    assert set(first_cells(table)) == set(get_args(RemarkCode))


def test_every_field_of_a_plot_is_documented() -> None:
    documented = first_cells(section(METRICS, "Plots"))
    of_source = dict(re.findall(r"^\| `(aiperf|client)` \| (.+?) \|$", section(METRICS, "Plots"), re.MULTILINE))
    for known in all_bars(()):
        assert known.field in documented if known.source == "locust" else f"`{known.field}`" in of_source[known.source]


def test_the_clients_evidence_is_documented() -> None:
    assert first_cells(section(METRICS, "Client")) == [known.name for known in fields(WorkerUse)]
    for known in (*fields(HostUse), *fields(ProcessUse)):
        assert f"`{known.name}`" in section(METRICS, "Client"), known.name
    for name in Sample._fields:
        assert f"`{name}`" in section(FILES, "client.csv"), name


def test_the_columns_of_requests_are_documented() -> None:
    assert sorted(first_cells(section(FILES, "requests.parquet"))) == sorted([*SCHEMA.names, "metric.NAME"])
    for names, kind in re.findall(r"^\| (`.+?) \| (.+?) \|", section(FILES, "requests.parquet"), re.MULTILINE):
        for name in re.findall(r"`(\w+)`", names):
            column = SCHEMA.field(name)
            assert ("nullable" in kind) == (column.nullable and name not in ("label", "outcome")), name
            stored = str(column.type)
            documented = kind.removesuffix(", nullable")
            assert documented.split(" ")[0] in stored, (name, stored)


def test_the_columns_of_the_timeline_are_documented() -> None:
    assert first_cells(section(FILES, "timeline.csv")) == timeline.COLUMNS.split(",")


def _check_files(run_dir: Path) -> None:
    """The files, keys and columns of the demo's run against the page on files."""
    documented = {name.rstrip("/") for name in first_cells(section(FILES, "The run directory"))}
    assert {path.name for path in run_dir.iterdir()} | {"aiperf", "arrivals.bin", "counts.parquet"} == documented
    _check_summary(json.loads((run_dir / "summary.json").read_text()))
    for column in (run_dir / "client.csv").read_text().splitlines()[0].split(","):
        assert f"`{column}`" in section(FILES, "client.csv"), column


def _check_summary(summary: dict[str, Any]) -> None:
    assert sorted(first_cells(section(FILES, "summary.json"))) == sorted(summary)
    page = METRICS.read_text() + FILES.read_text()
    nested = [summary[key] for key in ("window", "environment", "rates", "latency", "warmup", "client")]
    for key in {key for part in nested for key in part}:
        assert f"`{key}`" in page or f".{key}`" in page, key
    assert set(summary["ledger"]) - {"workers", "in_flight"} <= set(re.findall(r"\w+", section(METRICS, "The ledger")))
