"""Runs beside each other: compared, as A and B, and drawn."""
