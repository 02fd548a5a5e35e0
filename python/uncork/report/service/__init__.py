"""The report on a profiled service."""
