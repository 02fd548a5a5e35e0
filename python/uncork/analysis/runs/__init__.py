"""Runs of any kind: their metrics, lists, comparisons and histories."""
