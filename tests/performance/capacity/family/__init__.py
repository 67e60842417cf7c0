"""Endpoints drawn from a stated prior, and searches of them: ``python -m tests.performance.capacity.family --help``."""
