"""Measurements a person runs by hand: ``python -m tests.performance``, or one program of it by name."""
