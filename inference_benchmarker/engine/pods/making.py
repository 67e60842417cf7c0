"""Makes the objects of a wave in a cluster, and removes them where it does not begin."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.hosts.host_keys import make_host_keys
from inference_benchmarker.engine.pods.kubectl import KubectlError, Right
from inference_benchmarker.engine.pods.objects import wave_objects
from inference_benchmarker.engine.pods.ownership import owned, resumed, secret_of
from inference_benchmarker.engine.processes.interrupts import counting_interrupts
from inference_benchmarker.errors import BenchmarkError, Interrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from inference_benchmarker.engine.pods.kubectl import Kubectl
    from inference_benchmarker.engine.pods.objects import PodsWave
    from inference_benchmarker.engine.pods.pods import Pods

TO_FETCH = (
    Right("get", "jobs.batch"),
    Right("delete", "jobs.batch"),
    Right("list", "pods"),
    Right("get", "pods", "log"),
    Right("create", "pods", "exec"),
)
"""What somebody must be allowed to do to bring the results of a wave home."""

TO_MAKE = (
    Right("create", "jobs.batch"),
    Right("patch", "jobs.batch"),
    Right("create", "secrets"),
    Right("create", "services"),
)
_FILES = Right("create", "configmaps")
_EXISTS = "(AlreadyExists)"


def check_rights(kubectl: Kubectl, wave: PodsWave | None = None) -> None:
    """Refuse, in one message, all that the user lacks to send a wave, or without one to fetch it."""
    rights = [*TO_FETCH, *(TO_MAKE if wave is not None else ()), *([_FILES] if wave and wave.files else [])]
    if lacking := kubectl.lacking(rights):
        where = f" in namespace {kubectl.namespace}" if kubectl.namespace else ""
        raise BenchmarkError(
            f"The cluster does not allow you{where} to {', '.join(map(str, lacking))}.",
            "Ask its administrator for a Role with these verbs, or give another --namespace.",
        )


@contextmanager
def making(
    kubectl: Kubectl, pods: Pods, wave: PodsWave, variables: Mapping[str, bytes], tell: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """Make the Job, suspended, then all that it owns, and let it begin; yields it as it is there.

    What fails here, or while the context is open, or is interrupted, has it removed with all that it owns.
    BenchmarkError with what the API says where it refuses an object.
    """
    *others, job = wave_objects(pods, wave)
    with counting_interrupts() as interrupts:  # or nobody would know whether it is there
        job = _created(kubectl, job, pods)
    try:
        if interrupts.count:
            raise Interrupted
        secret = secret_of(pods, {**make_host_keys(pods.senders, pods.primary), **variables})
        for each in (secret, *others):
            _created(kubectl, owned(each, job), pods)
        kubectl.patch("job", pods.job, resumed())
        yield job
    except BaseException:
        with counting_interrupts():
            remove(kubectl, pods.job, tell)
        raise


def remove(kubectl: Kubectl, job: str, tell: Callable[[str], None]) -> None:
    """Remove a Job with all that it owns; where that fails, say so."""
    try:
        kubectl.delete("job", job)
    except BenchmarkError as error:
        tell(f"Job {job} could not be removed ({error}). `benchmark kubernetes clean {job}` tries it again.")


def _created(kubectl: Kubectl, made: dict[str, Any], pods: Pods) -> dict[str, Any]:
    kind = made["kind"]
    try:
        return kubectl.create(made)
    except KubectlError as error:
        if kind == "Job" and _EXISTS in error.words:
            raise BenchmarkError(
                f"There is a Job {pods.job} already.",
                f"Give another --job-name, or remove it: benchmark kubernetes clean {pods.job}.",
            ) from None
        if error.is_absence and "namespaces" in error.words:
            raise BenchmarkError(
                f"The cluster has no namespace {kubectl.namespace}.", "Give one that it has with --namespace."
            ) from None
        raise BenchmarkError(f"The cluster refuses the {kind} {pods.job}: {error.words}.") from None
