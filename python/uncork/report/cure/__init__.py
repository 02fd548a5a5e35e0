"""The report of `uncork cure`: which changes were proven on a copy, and what they bring."""
