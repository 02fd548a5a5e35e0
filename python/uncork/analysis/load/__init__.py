"""What a stored load, or a sweep of loads, shows."""
