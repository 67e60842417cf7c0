"""Plans for users."""
