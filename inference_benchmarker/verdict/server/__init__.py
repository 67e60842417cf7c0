"""The server's metrics beside the client's numbers, in remarks: no finding follows from them. Pure.

``platform_metrics`` reads rows by their meaning and ``hardware_use`` what they say about hardware. The remarks on
errors, times, hardware and requests say what follows; ``remarks`` gives all of them in their order.
"""

from inference_benchmarker.verdict.server.remarks import diagnose, log_since

__all__ = ["diagnose", "log_since"]
