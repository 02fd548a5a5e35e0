"""Services beside the database: their processes, and what they hold."""
