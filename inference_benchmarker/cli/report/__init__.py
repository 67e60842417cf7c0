"""A run printed again, in one of its forms."""
