"""The live view of a wave and of a search, and the keys that steer them."""
