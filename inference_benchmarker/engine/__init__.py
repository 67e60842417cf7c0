"""Runs a wave: starts its processes, follows them, brings them to an end."""
