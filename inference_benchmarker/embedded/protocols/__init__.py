"""The platforms' APIs that the embedded endpoint answers."""
