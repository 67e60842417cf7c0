"""``benchmark manifests``: the objects with which Kubernetes sends a wave from pods, as YAML."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.address_flags import without_addresses
from inference_benchmarker.cli.core.arguments import Parser, command_parser
from inference_benchmarker.cli.core.terminal import say, write_file
from inference_benchmarker.cli.wave.pods_flags import OF_PODS, PODS_FLAGS, take_pods
from inference_benchmarker.cli.wave.wave import wave_of, wave_options
from inference_benchmarker.cli.wave.wave_flags import WAVE_FLAGS
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.exit_codes import OK
from inference_benchmarker.words.redact import hidden, without

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.plan.pods import Pods

JOIN_TIMEOUT_S = 600
"""For which pods wait for each other where nobody said: images have to be pulled."""

_ABOUT = """\
Prints the objects with which Kubernetes sends a wave from pods: the flags of a
wave say what is sent, and --pods from how many pods.

  benchmark manifests --pods 8 --workers 32 --factories-file my_endpoint.py \\
      --client-rps 40000 --obs-time 60 --keys-dir keys > wave.yaml
"""
_EPILOG = "exit codes: 0 the objects were printed; 2 bad input\n"
_END_S = 60  # beyond the drain, for the report
_NOT_IN_PODS = {
    "demo": "the embedded endpoint listens on the loopback of one pod: give an endpoint",
    "calibrate": "what this tool adds is measured on one machine: leave it out",
    "aiperf": "aiperf sends from one machine alone: leave it out",
    "aiperf_only": "aiperf sends from one machine alone: leave it out",
    "interactive": "a pod has no terminal: give --stages",
    "ui": "the page is on the loopback of a pod: leave it out",
    "hosts": "the pods are the hosts",
    "hosts_file": "the pods are the hosts",
    "listen": "the pods find each other by a Service",
    "host_keys": "the pods have keys of their own",
    "requirements": "install the packages in the image",
    "output_dir": "the pods have a place of their own",
    "api_key": "it would be printed: set the variable BENCHMARK_API_KEY, and give --pass-env BENCHMARK_API_KEY",
}
_OURS = ("config", *(flag.name for flag in PODS_FLAGS[OF_PODS]), "pass_env", "join_timeout", "workers")
_FILES = ("endpoint_config", "replay", "conversations")
_REFERENCE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


@dataclass(frozen=True, slots=True)
class _Given:
    """A wave as it is to be sent from pods. ``words`` of the command line there; ``files`` by their place there."""

    plan: WavePlan
    words: tuple[str, ...]
    files: Mapping[str, Path]
    lacking: tuple[str, ...]


def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    from inference_benchmarker.engine.pods.objects import PodsWave, wave_objects
    from inference_benchmarker.engine.pods.yaml_text import as_yaml

    parser = manifests_parser()
    rest, addresses = without_addresses(arguments, parser.flags)
    options, problems = wave_options(parser, rest, addresses)
    pods = take_pods(options, problems)
    problems += _refused(options)
    refuse(problems)
    given = _given(parser, pods, options, addresses)
    files = _read(given.files, pods)
    hosts = given.plan.hosts
    wave = PodsWave(
        arguments=given.words,
        workers=max(len(numbers) for numbers in hosts.numbers.values()),
        variables=hosts.pass_env,
        files=files,
        join_timeout_s=ceil(hosts.join_timeout_s),
        drain_s=ceil(given.plan.drain_timeout_s) + _END_S,
        deadline_s=_deadline_s(pods, given.plan),
    )
    text = "---\n".join([_head(pods, options["keys_dir"]), *map(as_yaml, wave_objects(pods, wave))])
    if without(text) != text:
        raise BenchmarkError("The value of a secret variable of this environment would be printed.", "Pass it by name.")
    if options["keys_dir"] is not None:
        _write_secret(Path(options["keys_dir"]), pods, hosts.pass_env)
    if given.lacking:
        flags = " ".join(f"--pass-env {name}" for name in given.lacking)
        say(f"The pods lack {', '.join(given.lacking)}, which is set here: give {flags}, unless the image sets it.")
    write_file(text.encode())
    return OK


def manifests_parser() -> Parser:
    """Its flags, and its help."""
    return command_parser(
        "benchmark manifests",
        {**PODS_FLAGS, **WAVE_FLAGS},
        usage="benchmark manifests --pods N [URL | --factories-file FILE] [options]",
        description=_ABOUT,
        epilog=_EPILOG,
    )


def _refused(options: Mapping[str, Any]) -> Iterator[str]:
    """Flags that make no sense in a pod, each in a sentence."""
    for name, why in _NOT_IN_PODS.items():
        if options[name]:
            yield f"--{name.replace('_', '-')} is not for pods: {why}."


def _given(parser: Parser, pods: Pods, options: Mapping[str, Any], addresses: Sequence[str]) -> _Given:
    """The wave that was asked for, held against everything that a wave is held against, or one error."""
    from inference_benchmarker.engine.hosts.shipping import cargo_of

    ours = dict.fromkeys(_OURS)
    own = {
        "hosts": ",".join(pods.senders),
        "workers": options["workers"] or str(pods.pods),
        "join_timeout": options["join_timeout"] or str(JOIN_TIMEOUT_S),
    }
    checked = {"host_keys": "own.json", "listen": "127.0.0.1:5557", "pass_env": options["pass_env"]}
    plan = wave_of([*addresses, *_words(parser, {**options, **ours, **own, **checked})])
    cargo = cargo_of(
        replace(
            plan,
            factories_file=plan.factories_file and plan.factories_file.resolve(),
            locust_file=plan.locust_file and plan.locust_file.resolve(),
        )
    )
    from_user = options["locust_file"] is not None or _is_file(options["factories_file"])
    places = cargo.places if from_user else {}
    sent = {place.partition("/")[2]: path for place, path in cargo.files}
    files = sent if from_user else {str(path): path for path in plan.hosts.with_files}
    more, values = _other_files(options)
    words = (*addresses, *_words(parser, {**options, **ours, **own, **places, **values, **_settings(plan, options)}))
    _refuse_secrets(words)
    named = [name for word in words for pair in _REFERENCE.findall(word) for name in pair if name in os.environ]
    lacking = tuple(name for name in dict.fromkeys([*cargo.asked, *named]) if name not in plan.hosts.pass_env)
    return _Given(plan, words, {**files, **more}, lacking)


def _is_file(text: str | None) -> bool:
    """Tells whether a factories file is one of the user's: the examples that can be named are in every image."""
    return text is not None and Path(text).expanduser().is_file()


def _settings(plan: WavePlan, options: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the factories file, with those that this environment gives."""
    from inference_benchmarker.cli.core.file_flags import settings_in

    found = [] if plan.factories_file is None else settings_in(plan.factories_file, os.environ)
    return {"set": [*found, *(options["set"] or ())] or None}


def _other_files(options: Mapping[str, Any]) -> tuple[dict[str, Path], dict[str, str]]:
    """The files that other flags name, by their place in the pods, and the values of those flags there."""
    files: dict[str, Path] = {}
    values: dict[str, str] = {}
    problems = []
    named = {name: options[name] for name in _FILES if options[name] is not None}
    body = options["body"] or ""
    if body.startswith("@"):
        named["body"] = body[1:]
    for name, text in named.items():
        path = Path(text).expanduser().absolute()
        if not path.is_relative_to(Path.cwd()) or ".." in path.parts:
            problems.append(f"--{name.replace('_', '-')} {text}: give a file below the current folder.")
            continue
        place = str(path.relative_to(Path.cwd()))
        files[place] = path
        values[name] = f"@{place}" if name == "body" else place
    refuse(problems)
    return files, values


def _words(parser: Parser, options: Mapping[str, Any]) -> Iterator[str]:
    """The options as a command line."""
    for name, flag in parser.flags.items():
        value = options[name]
        if flag.metavar is None:
            yield from [flag.flag] if value else []
        elif value is not None:
            yield from (f"{flag.flag}={each}" for each in (value if isinstance(value, list) else [value]))


def _refuse_secrets(words: Sequence[str]) -> None:
    """No word that is printed may be a secret; ``$NAME`` is none."""
    kept = "put it into a variable, write $NAME where the flag takes it, and give --pass-env NAME"
    shown = {word: _REFERENCE.sub("", word) for word in words}
    secret = [word.partition("=")[0] for word, text in shown.items() if hidden(text) != text]
    refuse(
        [
            f"{each if each.startswith('-') else 'The URL'} has a secret that would be printed: {kept}."
            for each in secret
        ]
    )


def _read(files: Mapping[str, Path], pods: Pods) -> dict[str, bytes]:
    """The content of the files. BenchmarkError where it holds a secret of this environment, or a ConfigMap does not."""
    from inference_benchmarker.engine.pods.objects import MOST_BYTES
    from inference_benchmarker.words.wording import size_text

    try:
        found = {place: path.read_bytes() for place, path in sorted(files.items())}
    except OSError as error:
        raise BenchmarkError(f"{error.filename}: cannot be read ({error.strerror}).") from None
    texts = {place: content.decode(errors="replace") for place, content in found.items()}
    kept = "read the variable there, and give --pass-env NAME"
    secret = [place for place, text in texts.items() if without(text) != text]
    refuse([f"{each} has the value of a secret variable, which would be printed: {kept}." for each in secret])
    if (size := sum(map(len, found.values()))) > MOST_BYTES:
        largest = max(found, key=lambda place: len(found[place]))
        raise BenchmarkError(
            f"The files of this wave have {size_text(size)}, and a ConfigMap takes {size_text(MOST_BYTES)}.",
            f"Put {largest} into the image (COPY in a Dockerfile, FROM {pods.image}), and name its path there.",
        )
    return found


def _deadline_s(pods: Pods, plan: WavePlan) -> int:
    """The seconds after which Kubernetes ends the Job: what the wave may take, and as long as the results are kept."""
    from inference_benchmarker.engine.pods.objects import KEPT_S

    if pods.deadline_s is not None:
        return ceil(pods.deadline_s)
    if plan.expected_s is None:
        raise BenchmarkError(
            "The length of this wave is not known beforehand.", "Give --deadline S: Kubernetes ends the Job then."
        )
    waits = plan.hosts.join_timeout_s + plan.load_timeout_s + plan.warmup_s + plan.drain_timeout_s
    return ceil(float(waits) + plan.expected_s) + KEPT_S


def _write_secret(folder: Path, pods: Pods, variables: Sequence[str]) -> None:
    """Make the folder of what the Secret holds, a file for each key of it."""
    from inference_benchmarker.engine.hosts.host_keys import write_host_keys

    write_host_keys(folder, pods.senders, pods.primary, {name: os.environ[name].encode() for name in variables})


def _head(pods: Pods, keys_dir: str | None) -> str:
    """The comment that says how the objects are used."""
    space = "" if pods.namespace is None else f" --namespace {pods.namespace}"
    folder = shlex.quote(keys_dir or "DIR")
    made = "" if keys_dir else "   (the folder of --keys-dir)"
    index = f"batch.kubernetes.io/job-name={pods.job},batch.kubernetes.io/job-completion-index=0"
    return f"""\
# A wave from {pods.pods} pods, and one that runs the primary. Kubernetes 1.29 or newer.
#   kubectl create{space} secret generic {pods.job} --from-file={folder}{made}
#   kubectl create -f THIS_FILE
#   kubectl patch{space} job {pods.job} --type=merge --patch '{{"spec": {{"suspend": false}}}}'     (starts it)
#   kubectl logs{space} --follow --tail=-1 --selector {index}
"""
