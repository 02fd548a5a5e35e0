"""Runs of any kind: their figures, lists, comparisons and histories."""
