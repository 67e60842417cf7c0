"""Experiments with real waves: a capacity, a ranking of variants, the proof of a plan."""
