"""What this client can do: its limits, and what it used up during a wave."""
