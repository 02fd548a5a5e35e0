"""Read-only monitoring of a PostgreSQL server: counters, activity, plans and sizes."""
