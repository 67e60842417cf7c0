"""The worker process: turns tokens into records. Started with ``python -m``; nobody imports it."""
