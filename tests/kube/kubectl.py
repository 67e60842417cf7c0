"""The real kubectl, as a user of one namespace."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

PATIENCE_S = 60.0


def program() -> str | None:
    """The one of the tests' environment, or else of this machine."""
    own = Path(sys.prefix, "bin", "kubectl")
    return str(own) if own.exists() else shutil.which("kubectl")


class Kubectl:
    """Runs commands; ``environment`` is theirs."""

    def __init__(self, path: str, kubeconfig: Path) -> None:
        self.path = path
        folder = kubeconfig.parent
        self.environment = {
            **os.environ,
            "KUBECONFIG": str(kubeconfig),
            "KUBECACHEDIR": str(folder / "cache"),
            "HOME": str(folder),
            "PATH": f"{Path(path).parent}:{os.environ['PATH']}",
        }

    def run(self, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """A command, to its end."""
        return subprocess.run(
            [self.path, *words], input=stdin, capture_output=True, check=False, env=self.environment, timeout=PATIENCE_S
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A command that goes on."""
        return subprocess.Popen(
            [self.path, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment
        )

    def __call__(self, *words: str, stdin: str = "") -> str:
        """What a command prints that must not fail."""
        done = self.run(*words, stdin=stdin.encode())
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def refusal(self, *words: str, stdin: str = "") -> str:
        """The last line of what a command says that must fail."""
        done = self.run(*words, stdin=stdin.encode())
        assert done.returncode != 0, done.stdout.decode()
        return done.stderr.decode().strip().splitlines()[-1]

    def object(self, *words: str) -> dict[str, Any]:
        """An object, or a list of them."""
        found = json.loads(self("get", *words, "--output=json"))
        assert isinstance(found, dict)
        return found

    def create(self, *objects: dict[str, Any]) -> None:
        """Create these."""
        self("create", "--filename=-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
