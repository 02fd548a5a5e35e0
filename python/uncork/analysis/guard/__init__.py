"""What the run of a guard shows, and what may explain it."""
