"""Reads what a PostgreSQL server tells of itself, and changes nothing."""
