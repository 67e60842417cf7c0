"""A wave on disk: the run directory and everything that is stored in it."""
