"""Decide what `uncork cure` tries, and judge what it measured. Pure."""
