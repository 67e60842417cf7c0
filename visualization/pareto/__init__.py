"""The speed of a user against the tokens of a GPU: points, their frontier, and what is better for whom."""
