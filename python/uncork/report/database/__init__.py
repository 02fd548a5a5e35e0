"""The report on a watched database server."""
