"""The places of the nodes: asked of a cluster that may refuse, and taken from a file that may hold anything."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.hosts.places import PARTS, place_of
from inference_benchmarker.engine.pods.kubectl import Kubectl, KubectlError
from inference_benchmarker.engine.pods.places import LABELS, places_of
from inference_benchmarker.system.followed import FOLLOWED, PLACES
from tests.case import case

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

PLACE = {"zone": "eu-west-1a", "instance_type": "m7i.large"}


class Cluster(Kubectl):
    """Answers what it was made with, or refuses."""

    def __init__(self, answer: dict[str, Any] | None) -> None:
        super().__init__()
        self._answer = answer
        self.asked: tuple[str, ...] = ()

    def read(self, *words: str) -> dict[str, Any]:
        self.asked = words
        if self._answer is None:
            raise KubectlError("kubectl get", 'nodes is forbidden: User "u" cannot get resource "nodes"')
        return self._answer


def node(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {**labels, "kubernetes.io/os": "linux"}}}


def test_a_node_has_the_place_that_its_labels_say() -> None:
    full = {LABELS[part]: value for part, value in PLACE.items()}
    rows: dict[str, tuple[dict[str, Any] | None, dict[str, Any]]] = {
        "one": (node("a", **full), {"a": PLACE}),
        "two": ({"items": [node("a", **full), node("b")]}, {"a": PLACE, "b": {}}),
        "no labels": ({"metadata": {"name": "a"}}, {"a": {}}),
        "forbidden": (None, {}),
        "something else": ({"items": [3]}, {}),
    }
    for name, (answer, expected) in rows.items():
        with case(name):
            assert places_of(Cluster(answer), {"b", "a"}) == expected


def test_of_no_node_nothing_is_asked() -> None:
    cluster = Cluster({"items": []})
    assert (places_of(cluster, ()), cluster.asked) == ({}, ())
    places_of(cluster, {"b", "a"})
    assert cluster.asked[:3] == ("nodes", "a", "b")


def test_a_place_is_taken_as_far_as_it_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / PLACES
    monkeypatch.setenv(FOLLOWED, str(tmp_path))
    rows: dict[str, tuple[str, dict[str, str]]] = {
        "both": (json.dumps({"a": PLACE, "b": {}}), PLACE),
        "another node": (json.dumps({"b": PLACE}), {}),
        "one": (json.dumps({"a": {**PLACE, "zone": "x\x1b[31m"}}), {"instance_type": "m7i.large"}),
        "more": (json.dumps({"a": {**PLACE, "name": "x"}}), PLACE),
        "no text": (json.dumps({"a": dict.fromkeys(PARTS, 3)}), {}),
        "no object": ("[]", {}),
        "no JSON": ("{", {}),
    }
    for name, (text, expected) in rows.items():
        with case(name):
            file.write_text(text)
            assert place_of("a") == expected
    assert place_of(None) == {}
    file.unlink()
    assert place_of("a") == {}
