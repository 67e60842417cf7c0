"""Comparison reports of run directories."""
