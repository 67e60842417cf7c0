"""Runs held against each other: estimates, their errors, and what changed. Pure."""
