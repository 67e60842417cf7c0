"""The meaning of the numbers: findings, who was the limit, VALID or INVALID. Pure."""
