"""Numbers and findings become words and JSON."""
