"""Reads logs, watches servers, records stacks, and keeps what was seen."""
