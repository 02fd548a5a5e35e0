"""Transactions of a log as scripts: whole sessions that can be sent again."""
