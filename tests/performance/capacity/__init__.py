"""Searches for a capacity against simulated queues: ``python -m tests.performance capacity``."""
