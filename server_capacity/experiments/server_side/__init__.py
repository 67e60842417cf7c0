"""The server's side of an experiment: its limits, its use, and what disturbed it."""
