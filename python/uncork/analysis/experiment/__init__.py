"""Results of experiments."""
