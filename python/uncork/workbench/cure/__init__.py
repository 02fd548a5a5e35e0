"""Proves on a copy which changes cure a database."""
