"""Measurements of a search's waves, counted from their records. Pure."""
