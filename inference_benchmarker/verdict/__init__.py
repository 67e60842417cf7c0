"""What the numbers mean: findings, who was the limit, VALID or INVALID. Pure."""
