"""The report of logs."""
