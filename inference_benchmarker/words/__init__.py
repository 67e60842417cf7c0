"""The words that people read: wording, units, secrets that are hidden, foreign text made plain. Pure."""
