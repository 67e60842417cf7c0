"""Waves with a planted culprit: their table, the program that records them, and the evidence it recorded."""
