"""Measures what observing costs."""
