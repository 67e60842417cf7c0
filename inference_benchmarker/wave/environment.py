"""With what and where a wave is run: what a reader needs to repeat it."""

from __future__ import annotations

import hashlib
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.facts.client_samples import NOT_MEASURED
from inference_benchmarker.facts.wave_facts import OF_SETTINGS
from inference_benchmarker.system.files import kind_of
from inference_benchmarker.system.procfs import not_measured
from inference_benchmarker.version import __version__

if TYPE_CHECKING:
    from inference_benchmarker.plan.plan import WavePlan

_OF_A_FILE = "FILE"
_PACKAGES = ("locust", "gevent", "boto3", "geventhttpclient")


def describe_environment(plan: WavePlan) -> dict[str, Any]:
    """Versions, host, the file that is run, those that settings such as ``BODY_FILE`` name, and the seed."""
    target = plan.factories_file or plan.locust_file
    return {
        "version": __version__,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "host": platform.node(),
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "file": None if target is None else str(target),
        "file_sha256": _sha256(target),
        OF_SETTINGS: {
            name: digest
            for name, text in plan.factory_settings.items()
            if name.endswith(_OF_A_FILE) and (digest := _sha256(Path(text))) is not None
        },
        "seed": plan.seed,
        **({} if (why := not_measured()) is None else {NOT_MEASURED: why}),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _sha256(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        if kind_of(path) != "file":
            return None
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:  # whoever needs it says so
        return None
