"""The variants of an endpoint: a search of each, and which of them serves a target at what cost."""
