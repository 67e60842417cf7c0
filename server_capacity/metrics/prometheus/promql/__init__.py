"""A Prometheus server that is asked in PromQL: its HTTP API, its answers, and their rows."""
