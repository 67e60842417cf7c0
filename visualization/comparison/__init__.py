"""Runs compared with each other: estimates, their errors, and what changed. Pure."""
