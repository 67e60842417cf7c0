"""The worker process: turns arrivals into records. Started with ``python -m``; nobody imports it."""
