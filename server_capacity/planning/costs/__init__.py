"""Money: what an instance costs, whoever says so; what a load costs; how many instances an account may have."""
