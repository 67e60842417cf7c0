"""AWS's Signature Version 4 for one service in one region, as botocore's SigV4Auth computes it.

What is the same for a second (credentials, time) or a day (the key made from the secret) is computed once, which
leaves two hashes and one HMAC for a request.
"""

from __future__ import annotations

import hmac
import time
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

ALGORITHM = "AWS4-HMAC-SHA256"
TIMESTAMP = "%Y%m%dT%H%M%SZ"


class Signer:
    """Signs POST requests. ``credentials``: botocore's, which refresh themselves; they are asked once a second."""

    def __init__(self, credentials: Any, region: str, service: str) -> None:
        self._credentials = credentials
        self._region = region
        self._service = service
        self._second = -1
        self._secret = ("", "")  # of which day and secret ``_key`` was made
        self._key = b""

    def sign(self, path: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """All headers to send: those given (names in lower case, host among them) and the signature's.

        ``path`` is as the request line has it, without a query.
        """
        second = int(time.time())
        if second != self._second:
            self._renew(second)
        signed = dict(sorted({**headers, **self._dated}.items()))
        names = ";".join(signed)
        canonical = "\n".join(f"{name}:{' '.join(value.split())}" for name, value in signed.items())
        request = f"POST\n{_canonical(path)}\n\n{canonical}\n\n{names}\n{sha256(body).hexdigest()}"
        text = f"{self._preamble}{sha256(request.encode()).hexdigest()}"
        signature = hmac.digest(self._key, text.encode(), "sha256").hex()
        signed["authorization"] = f"{self._scope}, SignedHeaders={names}, Signature={signature}"
        return signed

    def _renew(self, second: int) -> None:
        credentials = self._credentials.get_frozen_credentials()  # may refresh, and let other requests run
        now = time.strftime(TIMESTAMP, time.gmtime(second))
        scope = f"{now[:8]}/{self._region}/{self._service}/aws4_request"
        self._dated = {"x-amz-date": now}
        if credentials.token:
            self._dated["x-amz-security-token"] = credentials.token
        self._preamble = f"{ALGORITHM}\n{now}\n{scope}\n"
        self._scope = f"{ALGORITHM} Credential={credentials.access_key}/{scope}"
        if self._secret != (now[:8], credentials.secret_key):
            self._secret = (now[:8], credentials.secret_key)
            self._key = self._derive(f"AWS4{credentials.secret_key}".encode(), *scope.split("/"))
        self._second = second

    @staticmethod
    def _derive(key: bytes, *parts: str) -> bytes:
        for part in parts:
            key = hmac.digest(key, part.encode(), "sha256")
        return key


@lru_cache(maxsize=1024)
def _canonical(path: str) -> str:
    """A path as it is signed: without its dots and doubled slashes, quoted once more."""
    from botocore.utils import normalize_url_path

    return quote(normalize_url_path(path), safe="/~")
