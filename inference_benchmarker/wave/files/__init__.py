"""The tables of a run directory, a module for each file: written by rows or parts, read back whoever wrote them."""
