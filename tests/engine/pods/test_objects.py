"""The objects of a wave from pods: Kubernetes of several versions takes them, and Pod Security's strictest level."""

from __future__ import annotations

import base64
import shutil
import subprocess
from copy import deepcopy

import kubernetes_validate
import pytest
import yaml

from inference_benchmarker.engine.pods.objects import FILES as FOLDER
from inference_benchmarker.engine.pods.objects import wave_objects
from inference_benchmarker.engine.pods.pods import Pods
from inference_benchmarker.engine.pods.yaml_text import as_yaml
from tests.case import case
from tests.engine.pods.rules import VERSIONS, violations
from tests.engine.pods.waves import ARGUMENTS, FILES, WHOLE, a_wave, container, objects

EVERY = {
    "everything": (WHOLE, a_wave()),
    "the least": (Pods(1), a_wave(files={}, variables=())),
}


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_takes_every_object(version: str) -> None:
    for name, (pods, wave) in EVERY.items():
        for made in wave_objects(pods, wave):
            with case(f"{name}: {made['kind']}"):
                kubernetes_validate.validate(yaml.safe_load(as_yaml(made)), version, strict=True)


def test_a_field_that_kubernetes_does_not_know_would_be_seen() -> None:
    job = deepcopy(objects()["Job"])
    job["spec"]["backoffLimitPerindex"] = job["spec"].pop("backoffLimitPerIndex")
    with pytest.raises(kubernetes_validate.ValidationError, match="backoffLimitPerindex"):
        kubernetes_validate.validate(job, VERSIONS[0], strict=True)


def test_the_pods_keep_the_rules_of_restricted_namespaces() -> None:
    pod = objects()["Job"]["spec"]["template"]["spec"]
    assert list(violations(pod)) == []
    assert pod["automountServiceAccountToken"] is False
    assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True
    pod["securityContext"]["runAsNonRoot"] = False
    assert list(violations(pod)) == ["runAsNonRoot"]


def test_no_pod_is_started_again_and_none_that_fails_ends_another() -> None:
    """With ``backoffLimit: 0`` the first pod that fails would end the one that has the results."""
    spec = objects()["Job"]["spec"]
    assert (spec["completions"], spec["parallelism"], spec["completionMode"]) == (3, 3, "Indexed")
    assert (spec["backoffLimitPerIndex"], "backoffLimit" in spec) == (0, False)
    assert (spec["template"]["spec"]["restartPolicy"], spec["suspend"]) == ("Never", True)
    assert (spec["activeDeadlineSeconds"], spec["ttlSecondsAfterFinished"]) == (4_920, 3_600)


def test_a_container_gets_whole_cores_and_no_more_than_it_asks_for() -> None:
    for workers, cores in ((1, "2"), (2, "2"), (7, "7")):
        resources = container(workers=workers)["resources"]
        assert resources["requests"] == resources["limits"]
        assert resources["limits"]["cpu"] == cores


def test_each_pod_has_its_own_keys_and_the_primary_its_name() -> None:
    service, job = objects()["Service"], objects()["Job"]
    keys = container()["volumeMounts"][0]
    assert (keys["subPathExpr"], keys["readOnly"]) == ("load-$(JOB_COMPLETION_INDEX).json", True)
    labels = {**job["spec"]["template"]["metadata"]["labels"], "batch.kubernetes.io/job-completion-index": "0"}
    assert service["spec"]["selector"].items() <= labels.items()
    assert (service["spec"]["clusterIP"], service["spec"]["publishNotReadyAddresses"]) == ("None", True)
    (address,) = [each["value"] for each in container()["env"] if each["name"] == "PRIMARY"]
    assert address == f"{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"


def test_every_file_is_where_it_was_below_the_current_folder() -> None:
    made = objects()["ConfigMap"]
    contents = {key: text.encode() for key, text in made["data"].items()}
    contents |= {key: base64.b64decode(text) for key, text in made["binaryData"].items()}
    mounted = {each["mountPath"]: contents[each["subPath"]] for each in container()["volumeMounts"][3:]}
    assert mounted == {f"{FOLDER}/{place}": content for place, content in FILES.items()}
    assert container()["workingDir"] == FOLDER
    assert container(files={})["workingDir"] == "/runs"
    assert "ConfigMap" not in objects(files={})


def expanded(word: str) -> str:
    """A word as Kubernetes hands it to a container that has no variable (third_party/forked/golang/expansion)."""
    found, place = "", 0
    while place < len(word):
        sign, following = word[place], word[place + 1 : place + 2]
        if sign == "$" and following == "$":
            found, place = f"{found}$", place + 2
        elif sign == "$" and following == "(" and ")" in word[place:]:
            found, place = f"{found}<variable>", word.index(")", place) + 1
        else:
            found, place = found + sign, place + 1
    return found


def test_kubernetes_replaces_nothing_in_the_arguments() -> None:
    words = (*ARGUMENTS, "--header=A: $TOKEN", "--body=$(HOME) $$ $$(X) $", "--name=a $$b", "--set=X=$$(Y)$(Z")
    made = container(arguments=words)
    assert tuple(map(expanded, made["args"])) == words
    assert "--header=A: $TOKEN" in made["args"]
    assert [expanded(word) for word in made["command"]] == made["command"]


def test_the_command_of_the_pods_is_a_shell_script() -> None:
    shellcheck = shutil.which("shellcheck")
    if shellcheck is None:
        pytest.skip("shellcheck is not installed")
    script = container()["command"][2]
    done = subprocess.run([shellcheck, "--shell=dash", "-"], input=script, capture_output=True, text=True, check=False)
    assert done.stdout == ""


def test_values_of_variables_are_taken_from_the_secret() -> None:
    taken = {"secretKeyRef": {"name": "load", "key": "API_KEY"}}
    assert {"name": "API_KEY", "valueFrom": taken} in container()["env"]
