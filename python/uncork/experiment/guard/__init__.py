"""Two sides made one experiment, and the gates they have to pass."""
