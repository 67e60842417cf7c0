"""Stored results as types: of searches, rankings, plans and proofs. Pure."""
