"""The report of a watched database."""
