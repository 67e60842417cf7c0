"""Locust as the primary and the workers run in it: patched, with sockets that only they can speak on."""
