"""The search for a capacity with real waves: the command's part, from a plan to its answer."""
