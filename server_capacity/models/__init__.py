"""Queueing models: the twin of an endpoint, and a fleet of instances. Pure."""
