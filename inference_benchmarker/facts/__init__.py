"""What is known of a finished wave beside its records. Pure values."""
