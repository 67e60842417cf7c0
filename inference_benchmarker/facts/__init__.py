"""The facts of a finished wave beside its records. Pure values."""
