"""Drives trials through the ports, and keeps what is known."""
