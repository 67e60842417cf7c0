"""What one request was, as a row and as columns. Pure."""
