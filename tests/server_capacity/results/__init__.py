"""Tests of the types and the codec of stored results."""
