"""Tells whether the client was the limit, and by what. Pure."""
