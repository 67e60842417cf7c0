"""Records become numbers: each formula stands here once. Pure."""
