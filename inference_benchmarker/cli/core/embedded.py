"""The embedded endpoint beside a command, and the environment in which it is found."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

DEMO_URL = "BENCHMARK_DEMO_URL"


@contextmanager
def embedded_endpoint(**config: Any) -> Iterator[str]:
    """The address of an embedded endpoint; to the environment of this process and its children it is all of AWS."""
    from inference_benchmarker.embedded.aws.boto3_settings import isolated
    from inference_benchmarker.embedded.running import EndpointConfig, start

    with start(EndpointConfig(**config)) as endpoint:
        before = dict(os.environ)
        _set_environment({**isolated(before, endpoint.url), DEMO_URL: endpoint.url})
        try:
            yield endpoint.url
        finally:
            _set_environment(before)


def _set_environment(wanted: dict[str, str]) -> None:
    for name in set(os.environ) - set(wanted):
        del os.environ[name]
    os.environ.update(wanted)
