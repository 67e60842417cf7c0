"""What the server's metrics say beside the client's numbers. Pure.

``served`` reads rows by their meaning and ``uses`` what they tell of hardware; the remarks on errors, times, hardware
and requests say what follows, ``remarks`` all of them in their order.
"""

from inference_benchmarker.verdict.server.remarks import diagnose, log_since

__all__ = ["diagnose", "log_since"]
