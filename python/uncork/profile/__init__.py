"""Profiles of logs, servers and processes, and imported results of other tools."""
