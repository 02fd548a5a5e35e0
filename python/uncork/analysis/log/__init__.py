"""Results of stored logs."""
