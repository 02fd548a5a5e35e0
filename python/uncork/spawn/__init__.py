"""Processes that uncork starts, and that end with it however it ends."""
