"""The certificate authorities that aiperf believes: the system's, and those that other clients were told of."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE")
"""Variables that tell Python's HTTP clients and AWS's of authorities; aiperf's client reads none of them."""

_FILE, _FOLDER = "SSL_CERT_FILE", "SSL_CERT_DIR"


def certificate_problems(url: str, environment: Mapping[str, str]) -> list[str]:
    """The variable that leads nowhere, where aiperf would need it: it would fail at its first request."""
    if not url.lower().startswith("https:"):
        return []
    given = {name: environment[name] for name in _used(environment)}
    return [f"{name} is {value}: there is no such file." for name, value in given.items() if not Path(value).exists()]


def certificates(environment: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """The variables by which OpenSSL, and so aiperf, is told of the same authorities; the system's stay believed.

    Nothing where the user has said it in OpenSSL's own words, or not at all. ``scratch``: a folder for a bundle.
    """
    for name in _used(environment):
        path = Path(environment[name])
        if path.is_dir():
            return {_FOLDER: str(path)}
        if path.is_file():
            bundle = scratch / "authorities.pem"
            bundle.write_bytes(b"\n".join(each.read_bytes() for each in (path, *_systems())))
            return {_FILE: str(bundle)}
    return {}


def _used(environment: Mapping[str, str]) -> list[str]:
    """The variable that is taken, if one is."""
    if environment.get(_FILE) or environment.get(_FOLDER):
        return []
    return [name for name in BUNDLES if environment.get(name)][:1]


def _systems() -> Iterator[Path]:
    """The file of the authorities that the system believes, where it has one."""
    known = ssl.get_default_verify_paths()
    if known.cafile and Path(known.cafile).is_file():
        yield Path(known.cafile)
