"""Processes that uncork starts, and that end with uncork, however it ends."""
