"""Waves from the pods of a cluster that this command starts, follows and brings home."""
