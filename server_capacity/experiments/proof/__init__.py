"""The proof of a plan: its target for real, on as many instances as it says, long enough to tell."""
