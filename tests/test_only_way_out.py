"""Whatever the product writes gets out through few places, which hide secrets: no module opens anything by itself."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from typing import NamedTuple

import pytest

from tests.conftest import ROOT

PACKAGES = ("inference_benchmarker", "server_capacity", "client_capacity", "visualization")
TERMINAL = "inference_benchmarker/cli/"  # while a command runs its standard streams are outlets, which hide secrets
ALLOWED = {
    # The few places: what they write is without secrets, whoever calls them.
    "inference_benchmarker/system/files.py:replacing fdopen open": "makes a draft, in which callers write",
    "inference_benchmarker/system/files.py:replace_file replacing": "hides the values of secrets",
    "inference_benchmarker/system/files.py:write_given FileIO open": "hides the values of secrets",
    "inference_benchmarker/system/files.py:open_to_add open": "makes a file, to which callers add",
    "inference_benchmarker/system/files.py:add_text FileIO open_to_add": "hides the values of secrets",
    "inference_benchmarker/cli/core/redacting_stream.py:_write_whole write": "is an outlet's, which hides secrets",
    "inference_benchmarker/cli/core/redacting_stream.py:_open_what_is_closed open": "opens nothing, "
    "/dev/null, in place of a stream",
    "inference_benchmarker/engine/processes/child_logs.py:_Log.__init__ FileIO open_to_add": "takes "
    "lines that are cleaned",
    # What a process prints gets into such a log.
    "inference_benchmarker/engine/check.py:_run Popen": "prints to a log of ChildLogs",
    "inference_benchmarker/engine/hosts/local.py:LocalHost._spawn Popen": "prints to a log of ChildLogs",
    "inference_benchmarker/engine/locust/runtime.py:set_up_logging basicConfig": "logs to standard error, a ChildLog",
    "server_capacity/aiperf/installation.py:_start Popen": "prints to a log of ChildLogs",
    "server_capacity/aiperf/making.py:make_requests Popen": "prints to a log of ChildLogs",
    "server_capacity/provisioning/making.py:Making._start Popen": "prints to a log of ChildLogs",
    "server_capacity/provisioning/maker.py:main sys.stdout": "goes to the keeper, which hides it, and to a ChildLog",
    "inference_benchmarker/created_resources.py:created sys.stderr": "is a sentence of ours, for a file tried by hand",
    "server_capacity/experiments/ranking/children.py:_Child.__init__ Popen": "shares our standard "
    "error, and makes it an outlet",
    "inference_benchmarker/embedded/running.py:start Popen": "prints a traceback of our own code alone",
    # Our processes tell each other what others read only once it was cleaned.
    "inference_benchmarker/cli/capacity/variant_process.py:main fdopen": "is a pipe to our own process",
    "inference_benchmarker/engine/primary/launcher_channel.py:Parent.tell write": "is a pipe to our own process",
    "server_capacity/aiperf/inputs.py:main fdopen": "is a pipe to our own process",
    "server_capacity/provisioning/keeper_process.py:keep write": "is a pipe to our own process",
    "inference_benchmarker/engine/worker/check.py:main replacing": "is redacted, and removed by our own process",
    # Another host: what it prints is cleaned where it is heard, and what is sent there goes with the wave.
    "inference_benchmarker/engine/hosts/agent.py:_Wave.do_file open": "holds the files that go with a wave",
    "inference_benchmarker/engine/hosts/agent.py:main write": "is a pipe to our own process",
    "inference_benchmarker/engine/hosts/transport.py:_write write": "is a pipe to our own process",
    "inference_benchmarker/engine/hosts/socket_loop.py:SocketLoop._wake_up write": "is a pipe to our own thread",
    "inference_benchmarker/engine/hosts/host_keys.py:write_host_keys write_bytes": "holds keys, for their owner alone",
    "inference_benchmarker/engine/hosts/remote.py:RemoteHost._add_to_log write": "is a pipe to a ChildLog",
    "inference_benchmarker/engine/hosts/ssh.py:SshTransport._started Popen": "is ssh, whose words are redacted",
    "inference_benchmarker/engine/hosts/ssh.py:SshTransport.knock Popen": "is ssh, whose words go nowhere",
    "inference_benchmarker/engine/hosts/preparing.py:_fetch open write_text": "holds versions and packages",
    "inference_benchmarker/engine/hosts/unpacking.py:_filled move write_text": "holds packages, on another host",
    "inference_benchmarker/engine/hosts/unpacking.py:_unpack ZipFile copyfileobj open": "holds packages, there",
    "inference_benchmarker/engine/hosts/unpacking.py:main sys.stdout": "is ssh's pipe, whose words are redacted",
    # A pod: what comes from there was cleaned there, and what kubectl says is redacted.
    "inference_benchmarker/engine/pods/draft.py:Draft.add FileIO open": "holds results, cleaned where they were made",
    "inference_benchmarker/engine/pods/exec_link.py:ExecLink.__init__ Popen": "is kubectl, whose words are redacted",
    # Rows and pictures, of which every text was redacted before.
    "inference_benchmarker/wave/spool/spool.py:_open_locked open_to_add": "takes redacted batches and hides secrets",
    "inference_benchmarker/wave/spool/spool.py:SpoolWriter._write write": "takes redacted batches and hides secrets",
    "inference_benchmarker/wave/spool/spool.py:SpoolWriter._move_elsewhere mkstemp": "is the spool's second file",
    "inference_benchmarker/wave/files/counts_file.py:write_counts ParquetWriter replacing write_table": "was spooled",
    "inference_benchmarker/wave/files/requests_file.py:write_requests ParquetWriter replacing write_table": "spooled",
    "visualization/pages/series.py:_write replacing": "takes pixels; texts, as SVG is one, go through replace_file",
    "visualization/matplotlib_charts/pictures.py:_bytes savefig": "draws into memory",
    "inference_benchmarker/export/page.py:_Reader._send wfile": "answers with numbers and redacted labels",
    # What is sent must be what was given.
    "client_capacity/aiperf_extension.py:payload_factory_to_jsonl replacing": "holds requests, as they are sent",
    "server_capacity/aiperf/inputs.py:write_inputs replacing": "holds requests, as they are sent",
    "inference_benchmarker/recording/conversations/grouping.py:grouped connect": "holds turns, in a folder that goes",
    "inference_benchmarker/recording/reading.py:KeptRows.__init__ open": "holds instants and places",
    "inference_benchmarker/recording/rows.py:RowWriter.write OSFile new_file": "holds requests, in a folder that goes",
    "inference_benchmarker/recording/schedule.py:RecordedSchedule.write_to copyfileobj open": "holds instants",
    "server_capacity/provisioning/cleanup_file.py:CleanupFile._write replacing": "holds undos, "
    "which are run as they stand",
    "server_capacity/provisioning/cleanup_file.py:_locked open": "is a lock, and stays empty",
    "server_capacity/aiperf/certificates.py:certificates replacing": "holds certificates, which are public",
    "inference_benchmarker/cli/core/terminal.py:write_file write_bytes": "prints an example that "
    "comes with the package",
}
"""Every place that writes, by which names, and why no secret gets out there."""

OPENERS = frozenset(("open", "fdopen", "FileIO", "OSFile", "GzipFile"))
METHODS = frozenset(
    (
        *("write_text", "write_bytes", "writelines", "savefig", "tofile", "memmap", "pwrite", "writev", "wfile"),
        *("ParquetWriter", "write_table", "write_feather", "new_file", "new_stream", "__stdout__", "__stderr__"),
        *("FileHandler", "RotatingFileHandler", "TimedRotatingFileHandler", "StreamHandler", "basicConfig"),
        *("NamedTemporaryFile", "TemporaryFile", "SpooledTemporaryFile", "mkstemp", "ZipFile", "TarFile"),
        *("copyfile", "copyfileobj", "copy2", "copytree", "sendfile", "symlink_to", "hardlink_to"),
        *("replacing", "open_to_add"),
    )
)
"""Names of which each mention is a way out."""
OF_FRAMES = frozenset(("to_csv", "to_parquet", "to_excel", "to_pickle", "to_feather", "savez"))
QUALIFIED = {
    "os": {"write", "link", "symlink", "mkfifo"},
    "json": {"dump"},
    "pickle": {"dump"},
    "shutil": {"copy", "move"},
    "np": {"save", "savetxt"},
    "sqlite3": {"connect"},
    "syslog": {"syslog"},
    "subprocess": {"Popen", "run", "call", "check_call", "check_output", "getoutput"},
}
FOR_WRITING = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND", "O_TRUNC"}
MODE = re.compile(r"[rwaxbtU+]{1,4}")


class Way(NamedTuple):
    """A place that writes, as module:function, and the name by which it does."""

    place: str
    how: str


def ways_out(source: str, path: str = "visualization/made.py") -> set[Way]:
    """The ways out of a module."""
    found = _Ways(path)
    found.visit(ast.parse(source))
    return found.ways


class _Ways(ast.NodeVisitor):
    def __init__(self, path: str) -> None:
        self._path = path
        self._within: list[str] = []
        self.ways: set[Way] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self._within.append(node.name)
        self.generic_visit(node)
        self._within.pop()

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef  # noqa: N815 - ast's names

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """A qualified name that is imported bare is not seen where it is used."""
        for each in node.names:
            if each.name in QUALIFIED.get(node.module or "", ()):
                self._note(each.name)

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in METHODS:
            self._note(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        is_qualified = owner != "subprocess" and node.attr in QUALIFIED.get(owner, ())
        if node.attr in METHODS | OF_FRAMES or is_qualified:
            self._note(node.attr)
        if owner == "os" and node.attr in FOR_WRITING:
            self._note("open")
        if owner == "sys" and node.attr in ("stdout", "stderr") and not self._path.startswith(TERMINAL):
            self._note(f"sys.{node.attr}")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name == "open" and _is(node.func, "os.open") and _is(node.args[0], "os.devnull"):
            return
        if name in OPENERS and not _is(node.func, "os.open") and _writes(node):
            self._note(name)
        if name == "print" and not self._path.startswith(TERMINAL):
            self._note("print")
        if name in QUALIFIED["subprocess"] and _is(node.func, f"subprocess.{name}") and not _is_heard(node):
            self._note(name)
        self.generic_visit(node)

    def _note(self, how: str) -> None:
        self.ways.add(Way(f"{self._path}:{'.'.join(self._within)}", how))


def _is(node: ast.expr, written: str) -> bool:
    return ast.unparse(node) == written


def _writes(node: ast.Call) -> bool:
    """Whether a file is opened for more than reading, by its mode; one that is computed may be anything.

    What is not a method of a path has the path before the mode; the first argument of another's method may be anything.
    """
    is_method = isinstance(node.func, ast.Attribute) and node.func.attr == "open" and not _is_of_module(node.func)
    first = [each for each in node.args[:1] if isinstance(each, ast.Constant)]
    named = [each.value for each in node.keywords if each.arg == "mode"]
    return any(map(_is_for_writing, [*named, *(first if is_method else node.args[1:2])]))


def _is_of_module(called: ast.Attribute) -> bool:
    return ast.unparse(called.value) in ("io", "gzip", "bz2", "lzma", "tarfile", "codecs")


def _is_for_writing(mode: ast.expr) -> bool:
    if not isinstance(mode, ast.Constant):
        return True
    return isinstance(mode.value, str) and bool(MODE.fullmatch(mode.value) and set("wax+") & set(mode.value))


def _is_heard(node: ast.Call) -> bool:
    """Whether all that a process prints comes to us, or to nobody."""
    given = {each.arg: ast.unparse(each.value) for each in node.keywords}
    heard = {"subprocess.PIPE", "subprocess.DEVNULL", "subprocess.STDOUT"}
    return given.get("capture_output") == "True" or all(given.get(name) in heard for name in ("stdout", "stderr"))


@cache
def product() -> frozenset[str]:
    """Every place of the product that writes, and by which names."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        for place, how in ways_out(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT))):
            found[place].add(how)
    return frozenset(f"{place} {' '.join(sorted(hows))}" for place, hows in found.items())


def test_every_place_that_writes_is_known() -> None:
    """A text gets out by replace_file, write_given or add_text of files.py, or is printed by a command."""
    assert sorted(product() - ALLOWED.keys()) == []


def test_no_place_is_allowed_that_writes_nothing() -> None:
    assert sorted(ALLOWED.keys() - product()) == []


@pytest.mark.parametrize(
    ("source", "how"),
    [
        ('path.write_text("a")', "write_text"),
        ('write = Path.write_text\nwrite(path, "a")', "write_text"),
        ('Path("a").write_bytes(b"a")', "write_bytes"),
        ('open("a", "w")', "open"),
        ('open("a", mode="w")', "open"),
        ('open("a", mode)', "open"),
        ('io.open("a", "w")', "open"),
        ('gzip.open("a", "wt")', "open"),
        ('path.open("a")', "open"),
        ('path.open(mode="r+")', "open"),
        ("flags = os.O_WRONLY\nos.open(path, flags)", "open"),
        ('os.fdopen(1, "w")', "fdopen"),
        ('pa.OSFile("a", "wb")', "OSFile"),
        ('os.write(1, b"a")', "write"),
        ("from os import write", "write"),
        ("from subprocess import run", "run"),
        ("from tempfile import NamedTemporaryFile\nNamedTemporaryFile()", "NamedTemporaryFile"),
        ("json.dump(data, file)", "dump"),
        ('frame.to_csv("a")', "to_csv"),
        ('figure.savefig("a.png")', "savefig"),
        ('pq.write_table(table, "a")', "write_table"),
        ('logging.FileHandler("a")', "FileHandler"),
        ("logging.basicConfig()", "basicConfig"),
        ('print("a")', "print"),
        ('sys.stderr.write("a")', "sys.stderr"),
        ('shutil.copy("a", "b")', "copy"),
        ('sqlite3.connect("a")', "connect"),
        ('subprocess.run(["a"])', "run"),
        ('subprocess.Popen(["a"], stdout=subprocess.PIPE)', "Popen"),
        ('subprocess.Popen(["a"], stdout=file, stderr=subprocess.STDOUT)', "Popen"),
        ("with replacing(path) as file:\n    pass", "replacing"),
    ],
)
def test_a_way_out_is_seen(source: str, how: str) -> None:
    assert {way.how for way in ways_out(source)} == {how}


@pytest.mark.parametrize(
    "source",
    [
        'open("a")',
        'path.open("rb")',
        'open("a", encoding="utf-8")',
        "fleets.open(name)",
        "os.open(path, os.O_RDONLY)",
        "os.open(os.devnull, os.O_WRONLY)",
        'subprocess.run(["a"], capture_output=True)',
        'subprocess.Popen(["a"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)',
        'text.replace("a", "b")',
        "json.dumps(data)",
    ],
)
def test_what_only_reads_is_none(source: str) -> None:
    assert ways_out(source) == set()
