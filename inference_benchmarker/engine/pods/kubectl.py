"""``kubectl`` as a program: the user's contexts, credential plugins and proxies count, and no client library is needed.

The context and the namespace are settled once, so that a wave stays where it was begun if the user turns elsewhere.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from inference_benchmarker.engine.pods.objects import CONTAINER
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.words.redact import hidden
from inference_benchmarker.words.text import said

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PATIENCE_S = 60.0

SOON = "--request-timeout=10s"
"""For what an interrupt, or the time, does not wait for."""

_AT_ONCE = 4
_WORDS = 400  # characters of what it says
_NO_KUBECTL = "kubectl was not found: it is how this command reaches the cluster."
_NOT_FOUND = "(NotFound)"


class KubectlError(BenchmarkError):
    """kubectl could not do what it was asked for; ``words`` are its own, or those of the API."""

    def __init__(self, what: str, words: str) -> None:
        super().__init__(f"{what}: {words}")
        self.words = words

    @property
    def is_absence(self) -> bool:
        """Tells whether there is no such object."""
        return _NOT_FOUND in self.words


class Right(NamedTuple):
    """A thing that somebody may do: a verb, and a kind of object with its part."""

    verb: str
    kind: str
    part: str = ""

    def __str__(self) -> str:
        name = self.kind.partition(".")[0]
        return f"{self.verb} {name}/{self.part}" if self.part else f"{self.verb} {name}"


class Kubectl:
    """Runs kubectl in one context and namespace."""

    def __init__(self, context: str | None = None, namespace: str | None = None) -> None:
        places = {"--context": context, "--namespace": namespace}
        self._line = ["kubectl", *(f"{flag}={value}" for flag, value in places.items() if value)]
        self.namespace = namespace

    @classmethod
    def of_user(cls, namespace: str | None) -> Kubectl:
        """The kubectl in the current context, and its namespace unless another one was given.

        BenchmarkError where there is no kubectl. Within a pod there may be no context.
        """
        try:
            view = json.loads(cls().run("config", "view", "--minify", "--output=json"))
            (context,) = view["contexts"]
            return cls(str(context["name"]), namespace or str(context["context"].get("namespace", "default")))
        except (KubectlError, ValueError, KeyError, TypeError):
            return cls(None, namespace)

    def run(self, *words: str, given: object = None, alone: bool = False, patience_s: float = PATIENCE_S) -> bytes:
        """Run kubectl, and return what it prints. ``given``: an object that it reads as JSON.

        ``alone``: Ctrl-C is not for it. KubectlError where it fails or takes too long, BenchmarkError without kubectl.
        """
        done = self._done(words, given, alone=alone, patience_s=patience_s)
        if done.returncode:
            raise KubectlError(f"kubectl {words[0]}", _words_of(done.stderr))
        return done.stdout

    def read(self, *words: str) -> dict[str, Any]:
        """The object, or the list of objects, that ``kubectl get`` finds."""
        return self._object("get", *words)

    def create(self, made: dict[str, Any]) -> dict[str, Any]:
        """Make an object; returns it as it is there."""
        return self._object("create", "--filename=-", given=made)

    def patch(self, kind: str, name: str, change: dict[str, Any]) -> None:
        """Change an object."""
        self.run("patch", kind, name, "--type=merge", f"--patch={json.dumps(change)}", alone=True)

    def delete(self, kind: str, name: str) -> None:
        """Remove an object with all that it owns; one that is gone is no error."""
        self.run("delete", kind, name, "--ignore-not-found", "--cascade=background", "--wait=false", alone=True)

    def lacking(self, rights: Iterable[Right]) -> list[Right]:
        """Those that the user does not have."""
        every = list(rights)
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            return [right for right, has in zip(every, threads.map(self._may, every), strict=True) if not has]

    def in_container(self, pod: str, program: Sequence[str]) -> list[str]:
        """The command line that runs a program in a pod, with its standard input and output."""
        return [*self._line, "exec", "--stdin", f"--container={CONTAINER}", pod, "--", *program]

    def command(self, *words: str) -> str:
        """A command line that a user can repeat."""
        return shlex.join([*self._line, *words])

    def _object(self, *words: str, given: object = None) -> dict[str, Any]:
        printed = self.run(*words, "--output=json", given=given, alone=True)
        try:
            found = json.loads(printed)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise KubectlError(f"kubectl {words[0]}", "it did not print an object")
        return found

    def _may(self, right: Right) -> bool:
        """Tells what it prints: it says no with exit code 1, as it does where it fails."""
        words = ["auth", "can-i", right.verb, right.kind, *([f"--subresource={right.part}"] if right.part else [])]
        done = self._done(words)
        answer = done.stdout.strip()
        if not answer.startswith((b"yes", b"no")):
            raise KubectlError("kubectl cannot reach the cluster", _words_of(done.stderr))
        return answer.startswith(b"yes")

    def _done(
        self, words: Sequence[str], given: object = None, *, alone: bool = False, patience_s: float = PATIENCE_S
    ) -> subprocess.CompletedProcess[bytes]:
        """kubectl, which has ended."""
        try:
            return subprocess.run(
                [*self._line, *words],
                input=b"" if given is None else json.dumps(given).encode(),
                capture_output=True,
                start_new_session=alone,
                timeout=patience_s,
                check=False,
            )
        except FileNotFoundError:
            raise BenchmarkError(_NO_KUBECTL, "Install it: https://kubernetes.io/docs/tasks/tools/.") from None
        except OSError as error:
            raise BenchmarkError(f"kubectl cannot be started ({error.strerror}).") from None
        except subprocess.TimeoutExpired:
            raise KubectlError(f"kubectl {words[0]}", f"it has not ended within {patience_s:g} s") from None


def _words_of(printed: bytes) -> str:
    """The last line that is no warning: of several, it is the reason."""
    lines = hidden(printed.decode(errors="replace")).strip().splitlines()
    return said(next((line for line in reversed(lines) if not line.startswith("Warning: ")), ""), _WORDS).rstrip(".")
