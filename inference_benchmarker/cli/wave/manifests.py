"""``benchmark manifests``: the objects with which Kubernetes sends a wave from pods, as YAML."""

from __future__ import annotations

import os
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from inference_benchmarker.cli.core.address_flags import without_addresses
from inference_benchmarker.cli.core.arguments import Parser, command_parser
from inference_benchmarker.cli.core.terminal import say, write_file
from inference_benchmarker.cli.wave.asked_pods import asked_pods, of_pods
from inference_benchmarker.cli.wave.pods_flags import PODS_FLAGS
from inference_benchmarker.cli.wave.pods_wave import WAVE, may_hold_secrets, wave_for_pods
from inference_benchmarker.cli.wave.wave import wave_options
from inference_benchmarker.cli.wave.wave_flags import WAVE_FLAGS
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.exit_codes import OK
from inference_benchmarker.words.redact import without

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.engine.pods.pods import Pods

_ABOUT = """\
Prints the manifests (YAML) of a Kubernetes Job whose pods send a wave. The flags
of a wave define the load, and --pods sets the number of pods that send it.

  benchmark manifests --pods 8 --workers 32 --factories-file my_endpoint.py \\
      --client-rps 40000 --obs-time 60 --keys-dir keys > wave.yaml
"""
_EPILOG = "exit codes: 0 the manifests were printed; 2 bad input\n"


def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    from inference_benchmarker.engine.pods.objects import wave_objects
    from inference_benchmarker.engine.pods.yaml_text import as_yaml

    parser = manifests_parser()
    rest, addresses = without_addresses(arguments, parser.flags)
    options, problems = wave_options(parser, rest, addresses)
    asked = asked_pods(options, problems, partial(wave_for_pods, parser, options, addresses, WAVE))
    pods = asked.pods
    text = "---\n".join([_head(pods, options["keys_dir"]), *map(as_yaml, wave_objects(pods, asked.wave))])
    if without(text) != text:
        raise BenchmarkError("The value of a secret variable of this environment would be printed.", "Pass it by name.")
    if options["keys_dir"] is not None:
        _write_secret(Path(options["keys_dir"]).expanduser(), pods, asked.variables)
    if asked.lacking:
        say(asked.lacking_text)
    for place in may_hold_secrets(asked.wave.files):
        say(
            f"{place} seems to hold a secret, which is printed in plain: keep the YAML out of git, or let the file "
            "read a variable, and give --pass-env NAME."
        )
    write_file(text.encode())
    return OK


def manifests_parser() -> Parser:
    """Its flags, and its help."""
    return command_parser(
        "benchmark manifests",
        {**PODS_FLAGS, **of_pods(WAVE_FLAGS)},
        usage="benchmark manifests --pods N [URL | --factories-file FILE] [options]",
        description=_ABOUT,
        epilog=_EPILOG,
    )


def _write_secret(folder: Path, pods: Pods, variables: Sequence[str]) -> None:
    """Make the folder of what the Secret holds, a file for each key of it."""
    from inference_benchmarker.engine.hosts.host_keys import write_host_keys

    write_host_keys(folder, pods.senders, pods.primary, {name: os.environ[name].encode() for name in variables})


def _head(pods: Pods, keys_dir: str | None) -> str:
    """The comment that says how the objects are used."""
    space = "" if pods.namespace is None else f" --namespace {pods.namespace}"
    folder = shlex.quote(keys_dir or "DIR")
    made = "" if keys_dir else "   (the folder of --keys-dir)"
    return f"""\
# A wave from {pods.pods} pods, and one that runs the primary. Kubernetes 1.29 or newer.
#   kubectl create{space} secret generic {pods.job} --from-file={folder}{made}
#   kubectl create -f THIS_FILE
#   kubectl patch{space} job {pods.job} --type=merge --patch '{{"spec": {{"suspend": false}}}}'     (starts it)
#   first=batch.kubernetes.io/job-name={pods.job},batch.kubernetes.io/job-completion-index=0
#   until kubectl get{space} pod --selector $first --output name | grep -q .; do sleep 1; done
#   kubectl wait{space} --for=condition=Ready pod --selector $first --timeout=10m
#   kubectl logs{space} --follow --tail=-1 --selector $first
"""
