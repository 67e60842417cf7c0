"""Endpoint descriptions to copy and edit, one folder a platform."""
