"""The stream "cloudwatch": metrics that AWS services and agents publish, over the wave's window.

``block`` reads the configuration, ``warnings`` says what is odd about it, ``queries`` says what to ask, ``fetch`` asks,
``reading`` judges what came, ``rows`` tells it, ``source`` waits for it; ``hardware`` asks SageMaker meanwhile what the
endpoints run on, and ``logs``, where requests failed, what the endpoints wrote.
"""

from server_capacity.metrics.cloudwatch.block import check_block, read_block
from server_capacity.metrics.cloudwatch.limit_metrics import asking
from server_capacity.metrics.cloudwatch.source import make_source

__all__ = ["asking", "check_block", "make_source", "read_block"]
