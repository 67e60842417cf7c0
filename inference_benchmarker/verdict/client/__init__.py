"""Tells whether the client was the limit, and by what, or the endpoint, as the client saw it. Pure."""
