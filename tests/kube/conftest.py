"""A cluster for all tests of this folder, and a namespace for each."""

from __future__ import annotations

import itertools
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.hosts.errors import LabError
from tests.kube.api import ApiServer
from tests.kube.cluster import Cluster
from tests.kube.kubectl import PATIENCE_S, Kubectl, program
from tests.kube.resources import BY_NAME
from tests.kube.store import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def served() -> Iterator[ApiServer]:
    try:
        cluster = Cluster()
    except LabError as error:
        pytest.skip(str(error))
    with cluster, ApiServer(cluster) as server:
        yield server
    assert cluster.errors == []


@pytest.fixture
def cluster(served: ApiServer) -> Iterator[Cluster]:
    """Without the faults of the test before."""
    yield served.cluster
    served.cluster.mend()


@pytest.fixture
def kubectl(served: ApiServer, cluster: Cluster, tmp_path: Path) -> Iterator[Kubectl]:
    """In a namespace of its own, of which nothing is left afterwards."""
    with user_in(served, tmp_path) as user:
        yield user


@contextmanager
def user_in(served: ApiServer, folder: Path) -> Iterator[Kubectl]:
    """A kubectl in a new namespace, of which nothing is left afterwards; its files are in the folder."""
    path, cluster = program(), served.cluster
    if path is None:
        pytest.skip("needs kubectl")
    name = f"space-{next(_numbers)}"
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    cluster.create(BY_NAME["", "namespaces"], space)
    (folder / "user").mkdir()
    served.write_kubeconfig(folder / "user" / "config", name)
    yield Kubectl(path, folder / "user" / "config")
    for pod in cluster.store.of_kind("pods", name):
        cluster.delete(Key("pods", name, pod["metadata"]["name"]), grace_s=0)
    cluster.delete(Key("namespaces", "", name))
    wait_until(lambda: not [key for key, _ in cluster.store.items() if key.namespace == name])
    assert cluster.errors == []


def wait_until(is_so: Callable[..., object], *given: object) -> None:
    """Wait until a function of what is given says so."""
    until = time.monotonic() + PATIENCE_S
    while not is_so(*given):
        assert time.monotonic() < until
        time.sleep(0.02)
