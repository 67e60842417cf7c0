"""The certificate authorities that aiperf believes: the system's, and those that other clients are configured with."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from inference_benchmarker.system.files import replacing

if TYPE_CHECKING:
    from collections.abc import Mapping

BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE")
"""Variables that tell Python's HTTP clients and AWS's of authorities; aiperf's client reads none of them."""

_FILE, _FOLDER = "SSL_CERT_FILE", "SSL_CERT_DIR"


def certificate_problems(url: str, environment: Mapping[str, str]) -> list[str]:
    """The variables that lead nowhere, where aiperf would need them: it would fail at its first request."""
    if not url.lower().startswith("https:"):
        return []
    given = {name: environment[name] for name in BUNDLES if environment.get(name)}
    return [f"{name} is {value}: there is no such file." for name, value in given.items() if not Path(value).exists()]


def certificates(environment: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """The variables by which OpenSSL, and so aiperf, gets the same authorities beside those it knows.

    Nothing where no client is configured with any. ``scratch``: a folder for a bundle of them.
    """
    system = ssl.get_default_verify_paths()
    given = list(dict.fromkeys(Path(environment[name]) for name in BUNDLES if environment.get(name)))
    found = {}
    if files := [path for path in given if path.is_file()]:
        own = Path(environment.get(_FILE) or system.cafile or "")
        bundle = scratch / "authorities.pem"
        with replacing(bundle) as file:
            file.write(b"\n".join(path.read_bytes() for path in dict.fromkeys([*files, own]) if path.is_file()))
        found[_FILE] = str(bundle)
    if folders := [str(path) for path in given if path.is_dir()]:
        own_folder = environment.get(_FOLDER) or system.capath
        found[_FOLDER] = os.pathsep.join([*folders, *([own_folder] if own_folder else [])])
    return found
