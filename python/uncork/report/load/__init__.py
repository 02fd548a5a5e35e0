"""The report of a load and of a sweep of loads."""
