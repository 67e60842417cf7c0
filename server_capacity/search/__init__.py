"""The search for a capacity: from what was counted at each rate to the next rate, and to an interval. Pure."""
