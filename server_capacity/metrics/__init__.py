"""Server metrics over a wave's window, asked of CloudWatch and Prometheus: each source of metrics is a package.

``config`` has the list of sources (``STREAMS``) and reads the user's configuration of them; ``follower`` counts the
instances of a server while the wave runs.
"""
