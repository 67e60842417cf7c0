"""HTTP as the embedded endpoint speaks it."""
