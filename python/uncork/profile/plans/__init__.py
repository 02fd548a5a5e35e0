"""Plans as EXPLAIN prints them: read as trees, and compared with each other."""
