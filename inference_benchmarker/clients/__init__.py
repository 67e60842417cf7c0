"""Clients that a factories file's ``invoke`` may use; they run in a worker, so they may import gevent."""
