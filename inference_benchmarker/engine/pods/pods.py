"""The pods of a cluster that a wave's load comes from, as their user asks for them. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from inference_benchmarker.errors import BenchmarkError, Problem
from inference_benchmarker.version import __version__
from inference_benchmarker.words.redact import excerpt, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from decimal import Decimal

MOST_PODS = 999
IMAGE = f"inference-benchmarker:{__version__}"
JOB = "inference-benchmarker"
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

_LABEL = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")  # RFC 1035, which a Service's name must follow
_LONGEST_JOB = 50  # the names of its pods add an index and five letters, and end at 63
_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")  # RFC 1123
_KEY = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
_IMAGE = re.compile(r"[A-Za-z0-9][\w.:/@-]{0,500}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Toleration:
    """A taint that pods tolerate. ``value`` None: whatever its value is; ``effect`` None: whatever it does."""

    key: str
    value: str | None = None
    effect: str | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``KEY``, ``KEY=VALUE``, ``KEY:EFFECT`` or ``KEY=VALUE:EFFECT``, as kubectl writes a taint."""
        pair, colon, effect = text.partition(":")
        key, equals, value = pair.partition("=")
        if not _KEY.fullmatch(key) or not _VALUE.fullmatch(value) or (colon and effect not in EFFECTS):
            raise BenchmarkError(
                f"{quoted(text)} is no taint.",
                f"Write KEY=VALUE:EFFECT or KEY:EFFECT; effects are {', '.join(EFFECTS)}.",
            )
        return cls(key, value if equals else None, effect or None)


@dataclass(frozen=True, slots=True)
class NodeLabel:
    """A label that nodes must have."""

    key: str
    value: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``KEY=VALUE``."""
        key, equals, value = text.partition("=")
        if not equals or not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
            raise BenchmarkError(f"{quoted(text)} is no label.", "Write KEY=VALUE, as in node-pool=load.")
        return cls(key, value)


@dataclass(frozen=True, slots=True)
class Pods:
    """A Job whose pods send a wave. ``pods`` of them send; one more, of index 0, runs the primary and the report.

    ``job``: the name of the Job, and of all that belongs to it. ``deadline_s``: when Kubernetes ends the Job, whatever
    it does; None: by the length of its wave.
    """

    pods: int
    job: str = JOB
    namespace: str | None = None
    image: str = IMAGE
    image_pull_secret: str | None = None
    node_labels: tuple[NodeLabel, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    service_account: str | None = None
    deadline_s: Decimal | None = None

    @property
    def primary(self) -> str:
        """The name of the pod that runs the primary."""
        return f"{self.job}-0"

    @property
    def senders(self) -> tuple[str, ...]:
        """The names of the pods that send, as hosts of the wave."""
        return tuple(f"{self.job}-{number}" for number in range(1, self.pods + 1))

    def problems(self) -> Iterator[Problem]:
        """Everything that is wrong with them."""
        if not 1 <= self.pods <= MOST_PODS:
            yield Problem(("pods",), f"--pods must be from 1 to {MOST_PODS}, not {self.pods:,}.")
        if not _LABEL.fullmatch(self.job) or len(self.job) > _LONGEST_JOB:
            text = f"use small letters, digits and hyphens, {_LONGEST_JOB} at most, and begin with a letter"
            yield Problem(("job",), f"--job-name {excerpt(self.job, 100)}: {text}.")
        if not _IMAGE.fullmatch(self.image):
            yield Problem(("image",), f"--pod-image {excerpt(self.image, 100)}: this is no name of an image.")
        if self.deadline_s is not None and self.deadline_s < 1:
            yield Problem(("deadline_s",), f"--deadline must be 1 second or more, not {self.deadline_s:f}.")
        names = {
            "--namespace": self.namespace,
            "--image-pull-secret": self.image_pull_secret,
            "--service-account": self.service_account,
        }
        for flag, name in names.items():
            if name is not None and not _SUBDOMAIN.fullmatch(name):
                yield Problem((flag,), f"{flag} {excerpt(name, 100)}: this is no name of Kubernetes.")
