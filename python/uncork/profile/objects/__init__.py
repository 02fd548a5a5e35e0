"""Logs in object stores and on web servers: find them, and fetch them by ranges."""
