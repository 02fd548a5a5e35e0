"""What a stored experiment shows."""
