"""Recorded traffic: read from a file, put in order, turned into the due times and rows of a wave."""
