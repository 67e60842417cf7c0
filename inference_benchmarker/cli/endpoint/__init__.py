"""Endpoints, examples of them, and what this client can send."""
