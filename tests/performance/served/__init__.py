"""Programs that run within the environments of other people's servers: what they serve."""
