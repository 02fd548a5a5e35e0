"""Results of loads and sweeps."""
