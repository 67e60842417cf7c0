"""Measurements of waves from several hosts, in the laboratory of tests/hosts."""
