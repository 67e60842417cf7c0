"""Stored results in words. Pure."""
