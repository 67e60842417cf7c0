"""With what and where a wave is run: what a reader needs to repeat it."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.facts.client_samples import NOT_MEASURED
from inference_benchmarker.facts.wave_facts import OF_MODULES, OF_SETTINGS
from inference_benchmarker.system.files import kind_of
from inference_benchmarker.system.imported import imported
from inference_benchmarker.system.procfs import not_measured
from inference_benchmarker.version import __version__
from inference_benchmarker.words.redact import HEADERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inference_benchmarker.plan.plan import WavePlan

_OF_A_FILE = "FILE"
_BODY = "BODY"  # the text itself, whatever it begins with
_PACKAGES = ("locust", "gevent", "boto3", "geventhttpclient")
_LONGEST_PATH = 4096


def describe_environment(plan: WavePlan, environment: Mapping[str, str]) -> dict[str, Any]:
    """Versions, host, what requests are made of, and the seed. ``environment``: as the wave's processes have it."""
    target = plan.factories_file or plan.locust_file
    return {
        "version": __version__,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "host": platform.node(),
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "file": None if target is None else str(target),
        **sent_with(plan, environment),
        "seed": plan.seed,
        **({} if (why := not_measured()) is None else {NOT_MEASURED: why}),
    }


def sent_with(plan: WavePlan, environment: Mapping[str, str]) -> dict[str, Any]:
    """The digests of the files that requests are made of, and the names of secret headers, where there are any."""
    named = {name: Path(value) for name, value in plan.factory_settings.items() if _names_file(name, value)}
    digests = {name: digest for name, path in named.items() if (digest := sha256_of(path)) is not None}
    main = plan.factories_file or plan.locust_file
    headers = sorted(_header_names(environment.get(HEADERS)))
    return {
        "file_sha256": sha256_of(main),
        OF_SETTINGS: digests,
        OF_MODULES: {} if main is None else _modules(main),
        **({"headers": headers} if headers else {}),
    }


def _modules(main: Path) -> dict[str, str]:
    """The digests of the modules beside a file that it imports."""
    found = {str(path.relative_to(main.parent)): sha256_of(path) for path in imported(main)}
    return {place: digest for place, digest in found.items() if digest is not None}


def _names_file(name: str, value: str) -> bool:
    """Tells whether a setting names a file: by its own name, as ``BODY_FILE`` does, or by a whole path."""
    is_path = value.startswith("/") and name != _BODY
    return (name.endswith(_OF_A_FILE) or is_path) and len(value) < _LONGEST_PATH and "\0" not in value


def _header_names(text: str | None) -> list[str]:
    """The names of the headers of a variable; none where that holds something else."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return []
    return list(found) if isinstance(found, dict) else []


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def sha256_of(path: Path | None) -> str | None:
    """The digest of a file's content; None where none can be read."""
    try:
        if path is None or kind_of(path) != "file":
            return None
        with path.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError:  # whoever needs it says so
        return None
