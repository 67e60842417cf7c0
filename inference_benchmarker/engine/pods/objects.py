"""The objects of Kubernetes of which a wave from pods consists: ConfigMap, Service and Job. Pure.

Index 0 of the Job runs the command and its primary. The other pods are hosts that connect to it by themselves
(``hosts/dialling``), by the name of the Service. Their keys, and the variables that are passed, are in a Secret of the
same name, which is not among these objects: its values stand in no text.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.hosts.protocol import NODE
from inference_benchmarker.exit_codes import BAD_INPUT, INTERRUPTED
from inference_benchmarker.system.followed import FOLLOWED
from inference_benchmarker.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from inference_benchmarker.engine.pods.pods import Pods

KEYS, FILES, RUNS, TEMPORARY = "/keys/own.json", "/work", "/runs", "/tmp"  # noqa: S108 - a folder of the container
FETCHED = f"{RUNS}/fetched"
"""Who has fetched the results makes this file, and the pod that keeps them ends."""

SAID = "/tmp/wave"  # noqa: S108 - a folder of the container
"""What the wave says while it runs (``words``), its process (``process``) and its exit code (``code``).

Beside them is what ``system/followed`` names."""

PORT = 5557
CONTAINER = "benchmark"
OURS = "inference-benchmarker"
NAME, WAVE = "app.kubernetes.io/name", "app.kubernetes.io/instance"
"""The labels of everything that this tool makes, and of what belongs to one wave."""

INDEX = "batch.kubernetes.io/job-completion-index"
KEPT_S = 3_600
"""The results are kept for so long after the wave, and so is a Job that has ended."""

MOST_BYTES = 1_000_000
"""Of all files: a ConfigMap takes 1 MiB."""

_USER = 1000
_NO_KEY = re.compile(r"[^A-Za-z0-9._-]")
_INDEX = "JOB_COMPLETION_INDEX"
_TERMINATED = 128 + 15  # as a shell counts a process that SIGTERM ended
_COMMAND = f"""\
# The first process of a container hears no signal that it does not ask for.
trap 'exit {_TERMINATED}' TERM
until_ended() {{
  trap 'kill -TERM $wave' TERM
  while :; do
    wait $wave
    code=$?
    kill -0 $wave 2>/dev/null || break
  done
}}
if [ "${_INDEX}" != 0 ]; then
  benchmark hosts join --address "$PRIMARY" --host-keys {KEYS} --join-timeout "$JOIN_TIMEOUT" &
  wave=$!
  until_ended
  exit "$code"
fi
mkdir -p {SAID}
benchmark --version >{SAID}/version
read -r _ version <{SAID}/version
if [ "$version" != {__version__} ]; then
  echo "benchmark: The image has version $version of this tool, and its Job is for {__version__} (--pod-image)." >&2
  exit {BAD_INPUT:d}
fi
# What the wave says goes to the log, and to whoever follows it.
rm -f {FETCHED}
mkfifo {SAID}/pipe
tee {SAID}/words <{SAID}/pipe >&2 &
# SIGTERM ends the wave, with its report; afterwards it ends the wait.
benchmark "$@" --host-keys {KEYS} --listen "$POD_IP:{PORT}" --output-dir {RUNS} 2>{SAID}/pipe &
wave=$!
echo $wave >{SAID}/process
until_ended
[ "$code" != {_TERMINATED} ] || code={INTERRUPTED:d} # before it could listen
echo "$code" >{SAID}/ended
mv {SAID}/ended {SAID}/code
set -- {RUNS}/*/
if [ -d "$1" ]; then
  timeout {KEPT_S} sh -c 'until [ -e {FETCHED} ]; do sleep 1; done' &
  trap 'kill $!' TERM
  wait $!
fi
exit "$code"
"""


@dataclass(frozen=True, slots=True)
class PodsWave:
    """A wave, as it is given to pods.

    ``arguments``: of ``benchmark``, but for what only the pods know. ``workers``: of a pod at the most. ``variables``:
    the names of those in the Secret. ``files``: by their path below the working folder. ``join_timeout_s``: for which
    pods wait for each other; ``drain_s``: that a wave takes to end, ``deadline_s``: after which all of it is ended.
    """

    arguments: Sequence[str]
    workers: int
    variables: Sequence[str]
    files: Mapping[str, bytes]
    join_timeout_s: int
    drain_s: int
    deadline_s: int


def wave_objects(pods: Pods, wave: PodsWave) -> list[dict[str, Any]]:
    """The objects in the order in which they are made. The Job is suspended: it is resumed once its Secret is there."""
    files = [_config_map(pods, wave.files)] if wave.files else []
    return [*files, _service(pods), _job(pods, wave)]


def _config_map(pods: Pods, files: Mapping[str, bytes]) -> dict[str, Any]:
    """The files; those that are no text in base64."""
    texts, others = {}, {}
    for key, content in zip(_keys(files).values(), files.values(), strict=True):
        try:
            texts[key] = content.decode()
        except ValueError:
            others[key] = base64.b64encode(content).decode()
    data = {"data": texts, "binaryData": others}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata_of(pods),
        "immutable": True,
        **{name: values for name, values in data.items() if values},
    }


def _keys(places: Iterable[str]) -> dict[str, str]:
    """The key of each file in the ConfigMap, which knows no folders: its own name, after a number."""
    return {place: f"{number}-{_NO_KEY.sub('_', place.rpartition('/')[2])}" for number, place in enumerate(places)}


def _service(pods: Pods) -> dict[str, Any]:
    """A name for the primary's pod, which is its address alone, and at once."""
    selector = {**_selector(pods), INDEX: "0"}
    ports = [{"name": "hosts", "port": PORT}]
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selector, "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata_of(pods), "spec": spec}


def _job(pods: Pods, wave: PodsWave) -> dict[str, Any]:
    """No pod is started again. One that fails ends no other: else the results would go with the primary's pod."""
    spec = {
        "suspend": True,
        "completionMode": "Indexed",
        "completions": pods.pods + 1,
        "parallelism": pods.pods + 1,
        "backoffLimitPerIndex": 0,
        "activeDeadlineSeconds": wave.deadline_s,
        "ttlSecondsAfterFinished": KEPT_S,
        "template": {"metadata": _metadata_of_pod(pods), "spec": _pod(pods, wave)},
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata_of(pods), "spec": spec}


def _metadata_of_pod(pods: Pods) -> dict[str, Any]:
    """Nodes are not emptied while a wave runs."""
    kept = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "karpenter.sh/do-not-disrupt": "true"}
    return {"labels": _labels(pods), "annotations": kept}


def _pod(pods: Pods, wave: PodsWave) -> dict[str, Any]:
    secret = {"secretName": pods.job, "defaultMode": 0o440}
    volumes: list[dict[str, Any]] = [
        {"name": "keys", "secret": secret},
        {"name": "runs", "emptyDir": {}},
        {"name": "temporary", "emptyDir": {}},
    ]
    if wave.files:
        volumes.append({"name": "files", "configMap": {"name": pods.job}})
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": _selector(pods)},
    }
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": wave.drain_s,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [spread],
        **_placed(pods),
        "containers": [_container(pods, wave)],
        "volumes": volumes,
    }


def _placed(pods: Pods) -> dict[str, Any]:
    """The fields that say where the pods run, and as whom, as far as it was asked for."""
    found = {
        "serviceAccountName": pods.service_account,
        "imagePullSecrets": pods.image_pull_secret and [{"name": pods.image_pull_secret}],
        "nodeSelector": {label.key: label.value for label in pods.node_labels},
        "tolerations": [
            {
                "key": each.key,
                **({"operator": "Exists"} if each.value is None else {"operator": "Equal", "value": each.value}),
                **({} if each.effect is None else {"effect": each.effect}),
            }
            for each in pods.tolerations
        ],
    }
    return {name: value for name, value in found.items() if value}


def _container(pods: Pods, wave: PodsWave) -> dict[str, Any]:
    """The container of each pod. Only whole cores, as many requested as allowed, can be its own, without quotas."""
    cores, memory = max(2, wave.workers), f"{1024 + 512 * wave.workers}Mi"
    resources = {"cpu": str(cores), "memory": memory}
    variables = [
        {"name": "PRIMARY", "value": f"{pods.job}:{PORT}"},
        {"name": "JOIN_TIMEOUT", "value": str(wave.join_timeout_s)},
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": NODE, "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": FOLLOWED, "value": SAID},
        *({"name": name, "valueFrom": {"secretKeyRef": {"name": pods.job, "key": name}}} for name in wave.variables),
    ]
    mounts = [
        {"name": "keys", "mountPath": KEYS, "subPathExpr": f"{pods.job}-$({_INDEX}).json", "readOnly": True},
        {"name": "runs", "mountPath": RUNS},
        {"name": "temporary", "mountPath": TEMPORARY},
        *(
            {"name": "files", "mountPath": f"{FILES}/{place}", "subPath": key, "readOnly": True}
            for place, key in _keys(wave.files).items()
        ),
    ]
    return {
        "name": CONTAINER,
        "image": pods.image,
        "workingDir": FILES if wave.files else RUNS,
        "command": ["/bin/sh", "-c", _COMMAND, "wave"],
        "args": [_escaped(word) for word in wave.arguments],
        "env": variables,
        "resources": {"requests": resources, "limits": resources},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": mounts,
    }


def _escaped(word: str) -> str:
    """A word that Kubernetes leaves as it is: it takes ``$(NAME)`` for a variable, and ``$$`` for ``$``."""
    return word.replace("$", "$$") if "$(" in word or "$$" in word else word


def metadata_of(pods: Pods) -> dict[str, Any]:
    """The name, place and labels of all that belongs to a wave."""
    namespace = {} if pods.namespace is None else {"namespace": pods.namespace}
    return {"name": pods.job, **namespace, "labels": _labels(pods)}


def _labels(pods: Pods) -> dict[str, str]:
    return {**_selector(pods), "app.kubernetes.io/version": __version__}


def _selector(pods: Pods) -> dict[str, str]:
    return {NAME: OURS, WAVE: pods.job}
