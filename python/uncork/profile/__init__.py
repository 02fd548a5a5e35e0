"""Evidence: what logs tell of a database."""
