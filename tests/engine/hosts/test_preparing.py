"""What `benchmark hosts` does on separate hosts, and an environment that is made of wheels."""

from __future__ import annotations

import base64
import io
import json
import os
import platform
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker import cli
from inference_benchmarker.engine.hosts.preparing import NEEDED, Kind, clean_hosts, kind_of
from inference_benchmarker.engine.hosts.ssh import MACHINE, PREPARED
from inference_benchmarker.version import __version__
from tests.hosts.host import LOGIN, Spec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.hosts.host import Host
    from tests.hosts.lab import Lab

SCRIPT = Path(cli.__file__).parents[1] / "engine" / "hosts" / "unpacking.py"
WORKER = "packages/inference_benchmarker/engine/worker/__main__.py"


def wheel(files: dict[str, str]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return data.getvalue()


def sent(files: dict[str, bytes]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return data.getvalue()


def unpacked(folder: Path, files: dict[str, bytes]) -> dict[str, object]:
    """What came of it; whatever came, nothing lies beside the folder."""
    line = [sys.executable, str(SCRIPT), str(folder), "MARK"]
    done = subprocess.run(line, input=sent(files), capture_output=True, check=True, timeout=60)
    assert {path.name for path in folder.parent.iterdir()} <= {folder.name}
    fields: dict[str, object] = json.loads(done.stdout.decode().partition("MARK")[2])
    return fields


@pytest.mark.process
class TestUnpacking:
    def test_an_environment_is_made_and_takes_the_place_of_one_that_was_there(self, tmp_path: Path) -> None:
        files = {
            "wheels/one-1.whl": wheel(
                {"one/__init__.py": "x = 7", "one-1.data/scripts/one": "no", "one-1.dist-info/METADATA": ""}
            ),
            "wheels/two-1.whl": wheel({"two-1.data/platlib/two.py": "import one; y = one.x"}),
            WORKER: b"import two",
        }
        folder = tmp_path / "cache" / "1.0"
        for _ in range(2):
            reported = unpacked(folder, files)
            assert isinstance(reported["bytes"], int)
            line = [str(folder / "bin" / "python"), "-c", "import two; print(two.y)"]
            assert subprocess.run(line, capture_output=True, text=True, check=True, timeout=60).stdout == "7\n"
        assert not list(folder.rglob("scripts"))
        assert not (folder / "sent").exists()
        assert (folder / MACHINE).read_text() == platform.machine()

    @pytest.mark.parametrize(
        ("files", "expected"),
        [
            ({WORKER: b"import nobody_has_this"}, "a worker cannot begin there: ModuleNotFoundError"),
            (
                {WORKER: b"", "wheels/evil-1.whl": wheel({"../../../../evil.py": ""})},
                "has a file at ../../../../evil.py",
            ),
            ({WORKER: b"", "wheels/bad-1.whl": b"no zip"}, "not a zip file"),
        ],
    )
    def test_one_that_does_not_work_is_not_left_there(
        self, tmp_path: Path, files: dict[str, bytes], expected: str
    ) -> None:
        folder = tmp_path / "cache" / "1.0"
        assert expected in str(unpacked(folder, files)["failed"])
        assert not folder.exists()


def waits_or_is_over(process: subprocess.Popen[bytes]) -> bool:
    waiting = [line.split() for line in Path("/proc/locks").read_text().splitlines() if "-> FLOCK" in line]
    return process.poll() is not None or any(str(process.pid) in words for words in waiting)


def test_two_that_make_it_at_the_same_time_do_not_remove_each_others_files(tmp_path: Path) -> None:
    folder, content = tmp_path / "made", sent({WORKER: b"", "wheels/a-1-py3-none-any.whl": wheel({"a.py": ""})})
    line = [sys.executable, str(SCRIPT), str(folder), "MARK"]
    with (
        subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as slow,
        subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other,
    ):
        assert slow.stdin is not None
        assert other.stdin is not None
        slow.stdin.write(content[:1024])
        slow.stdin.flush()
        other.stdin.write(content)
        other.stdin.close()
        while not waits_or_is_over(slow) and not waits_or_is_over(other):
            time.sleep(0.02)
        slow.stdin.write(content[1024:])
        slow.stdin.close()
        lines = [each.stdout.read().decode() for each in (slow, other) if each.stdout is not None]
    assert [text.count('MARK{"bytes": ') for text in lines] == [1, 1], lines
    assert {path.name for path in tmp_path.iterdir()} == {"made"}


def test_wheels_are_taken_for_the_hosts_python_processor_and_glibc() -> None:
    kind = Kind((3, 12), "aarch64", 28)
    text = " ".join(kind.arguments)
    assert "--python-version 3.12" in text
    assert "--abi cp312" in text
    assert "--platform manylinux_2_28_aarch64" in text
    assert "--platform manylinux2014_aarch64" in text
    assert "manylinux_2_29" not in text
    assert "x86_64" not in text


@pytest.mark.parametrize(
    "facts",
    [
        None,
        5,
        [],
        [[3, 11, 1], "x86_64"],
        [[3, 11, 1], "x86_64", "glibc"],
        [[3, "11", 1], "x86_64", ["glibc", "2.36"]],
        [[3, 11, 1], 7, ["glibc", "2.36"]],
        [[3, 11, 1], "x86_64", ["glibc", "2"]],
        [[3, 11, 1], "x86_64", ["glibc", "2.x"]],
        [[3, 11, 1], "x86_64", ["glibc", "2.999999999"]],
    ],
)
def test_a_host_that_answers_something_else_is_of_no_kind(facts: object) -> None:
    assert "something else than it was asked" in str(kind_of(facts))


def test_a_host_is_of_the_kind_that_it_answers() -> None:
    assert kind_of([[3, 11, 1], "x86_64", ["glibc", "2.36"]]) == Kind((3, 11), "x86_64", 36)
    assert "no glibc" in str(kind_of([[3, 11, 1], "x86_64", ["", ""]]))


def test_a_worker_imports_nothing_else_than_what_is_installed_for_it() -> None:
    """In a process of its own; what would be heavy to send is not among it."""
    code = (
        "import sys, json, inference_benchmarker.engine.worker.__main__, inference_benchmarker.engine.hosts.agent;"
        "print(json.dumps(sorted({n.partition('.')[0] for n in sys.modules} - sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    heavy = {"numpy", "pyarrow", "pandas", "matplotlib", "boto3", "botocore", "msgspec", "shtab", "scipy"}
    assert not heavy & set(json.loads(done.stdout.splitlines()[-1]))
    assert "locust" in NEEDED


@pytest.mark.process
@pytest.mark.usefixtures("users_ssh")
class TestOnHosts:
    @pytest.fixture(scope="class")
    def hosts(self, laboratory: Lab) -> Iterator[dict[str, Host]]:
        made = laboratory.start(
            Spec("good", clock_s=1000, bashrc="echo Welcome\n"),
            Spec("bare", has_python=False),
            Spec("locked", authorized=False),
        )
        yield {host.name: host for host in made}
        laboratory.stop(*made)

    def test_a_check_says_of_each_host_whether_it_is_usable(
        self, hosts: dict[str, Host], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert cli.main(["hosts", "check", "--hosts", f"localhost,{','.join(hosts)}*2", "--json"]) == 2
        found = {row.pop("name"): row for row in json.loads(capsys.readouterr().out)["hosts"]}
        assert found["localhost"]["problem"] is None
        assert found["localhost"]["clock"] is None
        good = found["good"]
        assert (good["problem"], good["version"]) == (None, __version__)
        assert abs(good["clock"]["offset_s"] - 1000) <= good["clock"]["uncertainty_s"] < 0.1
        assert good["cores"] >= 1
        assert good["open_files"] >= 256
        assert "no Python environment of InferenceBenchmarker" in found["bare"]["problem"]
        assert "Permission denied (publickey)" in found["locked"]["problem"]
        assert all(host.left() == [] for host in hosts.values())

    def test_usable_hosts_end_with_0_and_a_table(
        self, hosts: dict[str, Host], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert "good" in hosts
        assert cli.main(["hosts", "check", "--hosts", "good"]) == 0
        header, row = capsys.readouterr().out.splitlines()
        assert header.split()[:3] == ["Host", "usable", "version"]
        assert row.split()[:3] == ["good", "yes", __version__]
        assert "+1000 s" in row

    def test_where_nothing_can_be_installed_the_reason_is_said(
        self, hosts: dict[str, Host], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        line = ["hosts", "prepare", "--hosts", ",".join(hosts), "--wheels", str(tmp_path)]
        assert cli.main(line) == 2
        good, bare, locked = capsys.readouterr().out.splitlines()
        assert good.startswith("✗ good: pip found no wheels for Python 3.")
        assert bare == "✗ bare: there is no Python 3.11 or newer."
        assert locked.startswith("✗ locked: ")
        assert "Permission denied (publickey)" in locked
        assert hosts["good"].left() == []

    def test_what_was_installed_is_removed_of_every_version(self, hosts: dict[str, Host]) -> None:
        place = f"/home/{LOGIN}/{PREPARED.rpartition('/')[0]}/0.0.1/bin"
        hosts["good"].run("sh", "-c", f"mkdir -p {place} && touch {place}/python", check=True)
        done, failed = clean_hosts(["good", "locked"])
        assert (done.name, done.problem) == ("good", None)
        assert "Permission denied" in (failed.problem or "")
        assert hosts["good"].left() == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("check", "Which hosts? Give --hosts LIST or --hosts-file FILE."),
        ("check --hosts a,a", "--hosts: a appears 2 times"),
        ("prepare --hosts a --wheels no", "--wheels no: there is no such folder."),
        ("prepare --hosts a --requirements no", "--requirements no: there is no such file."),
        ("clean --hosts=-x", "--hosts: '-x' is not a host."),
        ("install --hosts a", "There is no command 'install' of benchmark hosts."),
    ],
)
def test_what_cannot_be_done_is_said(line: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["hosts", *line.split()]) == 2
    assert capsys.readouterr().err.startswith(f"benchmark: {expected}")


@pytest.mark.parametrize("command", ["prepare", "clean"])
def test_this_host_is_left_as_it_is_and_that_is_said(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["hosts", command, "--hosts", "localhost*2"]) == 0
    assert capsys.readouterr().out.startswith("✓ localhost: ")


def test_the_words_of_ssh_are_hidden_as_in_the_whole_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A key in base64 on lines, of which each alone is no secret."""
    spelt = base64.encodebytes(b"Bvodlmrgq2p22ED1xk" * 5).decode()
    monkeypatch.setenv("LONG_API_KEY", "Bvodlmrgq2p22ED1xk" * 5)
    (tmp_path / "said").write_text(spelt)
    (tmp_path / "ssh").write_text(f"#!/bin/sh\ncat {tmp_path}/said >&2\nexit 255\n")
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert cli.main(["hosts", "check", "--hosts", "h1"]) == 2
    stored = capsys.readouterr()
    assert "h1" in stored.out
    assert not [line for line in spelt.splitlines() if line in stored.out + stored.err]
