"""The quantities that a block of the endpoint configuration reads from a metrics page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from server_capacity.metrics.prometheus.block import PageBlock

if TYPE_CHECKING:
    from server_capacity.metrics.prometheus.block import Wanted


def wanted_of(**asked: Any) -> list[Wanted]:
    """Those of a block with these keys beside its ``scrape_url``."""
    return PageBlock.of({"scrape_url": "http://127.0.0.1:1/metrics", **asked}).wanted
