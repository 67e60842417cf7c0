"""Runs -> figures, with every number and nothing of how they are drawn. Pure."""
