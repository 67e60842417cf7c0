"""Token metrics by aiperf, which runs in an environment of its own."""
