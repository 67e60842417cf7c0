"""The stream "prometheus": a Prometheus server's HTTP API, or a bare metrics page scraped during the wave.

``block`` reads the configuration, ``block_checks`` says what is wrong with it, ``presets`` knows the names of inference
servers. ``scraping`` watches a page while the wave runs; ``promql`` asks a Prometheus server afterwards, signed by
``sigv4`` where it is AWS's. ``deltas`` has the formulas of both, and ``source`` is what a wave asks.
"""

from server_capacity.metrics.prometheus.block import read_block
from server_capacity.metrics.prometheus.block_checks import check_block
from server_capacity.metrics.prometheus.limit_metrics import asking
from server_capacity.metrics.prometheus.source import make_source

__all__ = ["asking", "check_block", "make_source", "read_block"]
