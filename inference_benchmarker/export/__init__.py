"""Hands the figures of running waves on to monitoring: a page that Prometheus reads, and OpenTelemetry's collectors."""
