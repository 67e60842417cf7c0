"""Server metrics over a wave's window: configured, followed, asked of CloudWatch and Prometheus."""
