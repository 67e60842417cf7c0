"""``python -m tests.kube --port N --kubeconfig FILE``: the cluster by hand, until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path

from tests.kube.api import ApiServer
from tests.kube.cluster import VERSION, Cluster

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.kube", description="A small Kubernetes for kubectl.")
    parser.add_argument("--port", type=int, default=0, help="on loopback (default: any free one)")
    parser.add_argument("--kubeconfig", type=Path, required=True, help="the file to write")
    parser.add_argument("--namespace", default="default", help="of the context in that file")
    parser.add_argument("--version", default=VERSION, help=f"of Kubernetes (default {VERSION})")
    given = parser.parse_args()
    asked = threading.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda *_: asked.set())
    with Cluster(given.version) as cluster, ApiServer(cluster, given.port) as server:
        server.write_kubeconfig(given.kubeconfig, given.namespace)
        sys.stdout.write(f"export KUBECONFIG={given.kubeconfig.absolute()}\n")
        sys.stdout.write(f"# {server.url}; the pods reach this machine at {cluster.address}. Ctrl-C ends it.\n")
        sys.stdout.flush()
        asked.wait()
    for error in cluster.errors:
        sys.stdout.write(f"{error}\n")
