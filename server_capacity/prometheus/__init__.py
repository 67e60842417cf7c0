"""The stream "prometheus": a Prometheus server's HTTP API, or a bare metrics page scraped during the wave.

``block`` reads the configuration, ``presets`` knows the names of inference servers, ``scraper`` watches a page,
``history`` keeps and ``reading`` reads what it saw (``deltas``: the formulas), ``server`` asks a Prometheus server.
"""

from server_capacity.prometheus.block import check_block
from server_capacity.prometheus.source import make_source

__all__ = ["check_block", "make_source"]
