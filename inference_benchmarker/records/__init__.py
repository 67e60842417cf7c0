"""One request's facts, as a row and as columns. Pure."""
