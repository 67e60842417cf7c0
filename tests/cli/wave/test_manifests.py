"""``benchmark manifests`` prints the wave that was asked for, and no secret; what it cannot print it says."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from inference_benchmarker import cli
from inference_benchmarker.cli.wave.wave import wave_of
from inference_benchmarker.engine.hosts.host_keys import read_gatekeeper, read_keys_of_host
from inference_benchmarker.engine.pods.objects import FILES
from inference_benchmarker.engine.pods.pods import IMAGE
from tests.case import case
from tests.conftest import ROOT
from tests.mentions import mentions

if TYPE_CHECKING:
    from collections.abc import Callable

    Printed = Callable[..., tuple[dict[str, Any], str, str]]

FACTORIES = """
import os
import lib.client
SIZE = 1
KEY = os.environ.get("ENDPOINT_KEY")
def invoke_factory():
    return lambda payload: None
def payload_factory():
    return {"pre_computed": True, "input": [1]}
"""
VALUE = "v4lue-of-the-endpoints-key"
WAVE = ("--factories-file", "f.py", "--client-rps", "400", "--obs-time", "60")
PODS = ("--pods", "4", "--job-name", "load", "--workers", "8")


TOKEN = {"bearer_token_env": "METRICS_TOKEN"}


@pytest.fixture(autouse=True)
def _a_folder_with_factories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here" / "lib").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.delenv("BENCHMARK_API_KEY", raising=False)
    files = {
        "f.py": FACTORIES,
        "lib/client.py": "",
        "data.csv": "a,b\n",
        "metrics.json": json.dumps(
            [{"stream": "prometheus", "url": "http://10.0.0.9", "queries": {"x": "y"}, **TOKEN}]
        ),
        "body.json": "{}",
        "schema.json": "{}",
        "wave.toml": "pods = 4\njob-name = 'load'\nworkers = 8\n"
        "client-rps = 400\nobs-time = 60\nfactories-file = 'f.py'\n",
        "../elsewhere.py": FACTORIES.replace("import lib.client\n", ""),
    }
    for name, text in files.items():
        Path(name).write_text(text)


@pytest.fixture
def printed(capfdbinary: pytest.CaptureFixture[bytes]) -> Printed:
    """The objects that a command line prints, by their kind, with the text of standard output and error."""

    def print_them(*arguments: str) -> tuple[dict[str, Any], str, str]:
        code = cli.main(["manifests", *arguments])
        out, err = (each.decode() for each in capfdbinary.readouterr())
        assert code == 0, err
        return {each["kind"]: each for each in yaml.safe_load_all(out) if each}, out, err

    return print_them


def container(objects: dict[str, Any]) -> dict[str, Any]:
    (found,) = objects["Job"]["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def mounted(objects: dict[str, Any]) -> dict[str, str]:
    """The content of the files of the pods, by their path there."""
    mounts = [each for each in container(objects)["volumeMounts"] if each["name"] == "files"]
    return {each["mountPath"]: objects["ConfigMap"]["data"][each["subPath"]] for each in mounts}


def test_the_pods_send_the_wave_that_was_asked_for(
    printed: Printed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its words, said in a folder with the files of the pods, describe the same plan."""
    words = (*WAVE, "--arrivals", "poisson", "--seed", "7", "--slo", "p99<200ms", "--with-file", "data.csv", "--json")
    objects, _, _ = printed(*PODS, *words)
    there = tmp_path / "there"
    for place, content in mounted(objects).items():
        path = there / Path(place).relative_to(FILES)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    monkeypatch.chdir(there)
    arguments = container(objects)["args"]
    plan = wave_of([*arguments, "--host-keys", "k", "--listen", "10.0.0.5:5557"])
    monkeypatch.chdir(tmp_path / "here")
    hosts = "load-1*2,load-2*2,load-3*2,load-4*2"
    of_pods = ("--hosts", hosts, "--join-timeout", "600", "--host-keys", "k", "--listen", "10.0.0.5:5557")
    assert plan == wave_of([*words, *of_pods])
    assert {*mounted(objects)} == {f"{FILES}/{name}" for name in ("f.py", "lib/client.py", "data.csv")}
    assert "--json" in arguments
    assert container(objects)["image"] == IMAGE
    assert objects["Job"]["spec"]["completions"] == 5


def test_no_secret_is_printed_and_each_is_in_the_folder(
    printed: Printed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENDPOINT_KEY", VALUE)
    folder = tmp_path / "keys"
    objects, out, err = printed(*PODS, *WAVE, "--pass-env", "ENDPOINT_KEY", "--keys-dir", str(folder))
    names = ["load-1", "load-2", "load-3", "load-4"]
    kept = {path.name: path.read_text() for path in folder.iterdir()}
    assert {*kept} == {"ENDPOINT_KEY", "load-0.json", *(f"{name}.json" for name in names)}
    secrets = [VALUE, *(json.loads(text)["own"]["secret"] for name, text in kept.items() if name != "ENDPOINT_KEY")]
    assert kept["ENDPOINT_KEY"] == VALUE
    assert [secret for secret in secrets if secret in out + err] == []
    gatekeeper = read_gatekeeper(folder / "load-0.json", names)
    assert gatekeeper.keys.workers == tuple(read_keys_of_host(folder / f"{name}.json").own.public for name in names)
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    taken = {"secretKeyRef": {"name": "load", "key": "ENDPOINT_KEY"}}
    assert {"name": "ENDPOINT_KEY", "valueFrom": taken} in container(objects)["env"]
    assert mentions(out, "kubectl create", "secret generic load", "--from-file", str(folder))


def test_the_first_lines_have_the_commands_of_the_page(printed: Printed, tmp_path: Path) -> None:
    _, out, _ = printed(*PODS, *WAVE, "--keys-dir", str(tmp_path / "load-keys"))
    head = itertools.takewhile(lambda line: line.startswith("#"), out.splitlines())
    said = [line.removeprefix("#   ").partition("     (")[0] for line in head if line.startswith("#   ")]
    shells = (ROOT / "docs/how-to/kubernetes.md").read_text().split("```sh\n")[1:]
    (page,) = (block for shell in shells if (block := shell.split("```", 1)[0]).startswith("kubectl create secret"))
    shown = "\n".join(said).replace(str(tmp_path / "load-keys"), "load-keys").replace("THIS_FILE", "wave.yaml")
    assert shown == page.rstrip()


def test_what_this_environment_adds_is_among_the_words_or_is_named(
    printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCHMARK_SIZE", "5")
    monkeypatch.setenv("ENDPOINT_KEY", VALUE)
    objects, _, err = printed(*PODS, *WAVE)
    assert "--set=SIZE=5" in container(objects)["args"]
    assert mentions(err, "ENDPOINT_KEY", "--pass-env ENDPOINT_KEY")
    objects, _, _ = printed(*PODS, *WAVE, "--pass-env", "BENCHMARK_SIZE")
    assert [word for word in container(objects)["args"] if word.startswith("--set")] == []
    _, _, err = printed(*PODS, *WAVE, "--pass-env", "ENDPOINT_KEY")
    assert err == ""
    header = ("--header", "Authorization: Bearer $ENDPOINT_KEY")
    objects, _, err = printed(*PODS, "http://10.0.0.1:8080/", "--client-rps", "1", "--obs-time", "1", *header)
    assert f"{header[0]}={header[1]}" in container(objects)["args"]
    assert mentions(err, "--pass-env ENDPOINT_KEY")


def test_the_variables_of_an_endpoint_config_are_named(printed: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    wave = (*PODS, "http://10.0.0.1:8080/", "--client-rps", "1", "--obs-time", "1", "--endpoint-config", "metrics.json")
    assert "METRICS_TOKEN" not in printed(*wave)[2]
    monkeypatch.setenv("METRICS_TOKEN", VALUE)
    assert mentions(printed(*wave)[2], "The pods lack METRICS_TOKEN", "--pass-env METRICS_TOKEN")
    assert "METRICS_TOKEN" not in printed(*wave, "--pass-env", "METRICS_TOKEN")[2]


@pytest.mark.parametrize(
    ("name", "text", "named"),
    [
        ("body.json", '{"password": "topsecret009988"}', True),
        ("body.json", '{"prompt": "a password is a word"}', False),
        ("f.py", FACTORIES.replace('os.environ.get("ENDPOINT_KEY")', '"sk-live-1234567890abcdef"'), True),
        ("f.py", FACTORIES.replace("SIZE = 1", "token = read(api_key=KEY)"), False),
    ],
)
def test_a_file_that_seems_to_hold_a_secret_is_named(printed: Printed, name: str, text: str, named: bool) -> None:
    Path(name).write_text(text)
    address = ("http://10.0.0.1:8080/", "--body", "@body.json", "--client-rps", "1", "--obs-time", "1")
    objects, _, err = printed(*PODS, *(WAVE if name == "f.py" else address))
    assert objects
    assert (f"{name} seems to hold a secret" in err) == named


def test_a_configuration_file_says_the_same_as_flags(printed: Printed) -> None:
    assert printed("--config", "wave.toml")[0] == printed(*PODS, *WAVE)[0]


def test_files_of_other_flags_go_with_the_wave(printed: Printed) -> None:
    objects, _, _ = printed(*PODS, *WAVE, "--endpoint-config", str(Path.cwd() / "metrics.json"))
    assert mounted(objects)[f"{FILES}/metrics.json"] == Path("metrics.json").read_text()
    assert "--endpoint-config=metrics.json" in container(objects)["args"]
    objects, _, _ = printed(*PODS, "http://10.0.0.1/", "--client-rps", "1", "--obs-time", "1", "--body", "@body.json")
    assert (mounted(objects), container(objects)["args"][0]) == ({f"{FILES}/body.json": "{}"}, "http://10.0.0.1/")
    objects, _, _ = printed(*PODS, *WAVE, "--expect", "json", "--expect", "schema:./schema.json")
    assert mounted(objects)[f"{FILES}/schema.json"] == "{}"
    assert [word for word in container(objects)["args"] if "expect" in word] == [
        "--expect=json",
        "--expect=schema:schema.json",
    ]
    objects, _, _ = printed(*PODS, "--factories-file", "../elsewhere.py", *WAVE[2:])
    assert {*mounted(objects)} == {f"{FILES}/elsewhere.py"}
    assert "--factories-file=elsewhere.py" in container(objects)["args"]


def test_the_job_ends_by_the_length_of_its_wave_unless_somebody_says_when(printed: Printed) -> None:
    """600 s each for joining and loading, the wave, its drain, and an hour for the results."""
    rows = {
        (*WAVE, "--warmup", "5"): 600 + 600 + 5 + 60 + 60 + 3_600,
        (*WAVE, "--join-timeout", "60", "--load-timeout", "10", "--drain-timeout", "1"): 60 + 10 + 60 + 1 + 3_600,
        (*WAVE, "--deadline", "2h"): 7_200,
        ("--factories-file", "f.py", "--concurrency", "8", "--num-requests", "9", "--deadline", "90"): 90,
    }
    for words, expected in rows.items():
        with case(" ".join(words)):
            assert printed(*PODS, *words)[0]["Job"]["spec"]["activeDeadlineSeconds"] == expected


def test_what_pods_cannot_do_is_said(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", VALUE)
    Path("secret.py").write_text(f"{FACTORIES}TOKEN = {VALUE!r}\n")
    Path("large.csv").write_bytes(b"x" * 1_000_001)
    url = ("http://10.0.0.1/", "--client-rps", "1", "--obs-time", "1")
    rows: dict[tuple[str, ...], tuple[str, ...]] = {
        WAVE: ("--pods N",),
        (*PODS, *WAVE[:4]): ("--obs-time",),
        (*PODS, *WAVE, "--demo"): ("--demo is not for pods",),
        (*PODS, *WAVE, "--hosts", "a"): ("--hosts is not for pods",),
        (*PODS, *WAVE, "--output-dir", "x"): ("--output-dir is not for pods",),
        (*PODS, *url, "--api-key", "x"): ("--api-key is not for pods", "--pass-env BENCHMARK_API_KEY"),
        (*PODS, *url, "--header", f"X: {VALUE}"): ("--header", "secret", "--pass-env"),
        (*PODS, *url, "--header", "Authorization: Bearer abcdef123456"): ("--header", "secret", "--pass-env"),
        (*PODS, "http://u:passw0rd@h/", *url[1:]): ("The URL", "secret"),
        (*PODS, "--factories-file", "secret.py", *WAVE[2:]): ("secret.py", "secret variable", "--pass-env"),
        (*PODS, *WAVE, "--with-file", "large.csv"): ("976.6 KiB", "large.csv", f"FROM {IMAGE}"),
        (*PODS, *WAVE, "--endpoint-config", "/etc/hosts"): ("--endpoint-config /etc/hosts", "below the current folder"),
        (*PODS, *WAVE, "--endpoint-config", "none.json"): ("none.json", "No such file"),
        (*PODS, *WAVE, "--keys-dir", "lib"): ("--keys-dir lib", "never replaced"),
        (*PODS, "--factories-file", "f.py", "--concurrency", "8", "--num-requests", "9"): ("--deadline S",),
        ("--pods", "4", *WAVE, "--workers", "3"): ("--workers 3 is too few",),
        (*PODS, *WAVE, "--toleration", "a b"): ("--toleration", "'a b' is no taint"),
        (*PODS, *WAVE, "--pass-env", "NO_SUCH"): ("--pass-env NO_SUCH",),
    }
    for words, expected in rows.items():
        with case(" ".join(words)):
            assert cli.main(["manifests", *words]) == 2
            out, err = capfd.readouterr()
            assert (out, mentions(err, *expected)) == ("", True), err
            assert VALUE not in err
