"""The variants of an endpoint: what is varied, a search of each, and which of them serves a target at what cost."""
