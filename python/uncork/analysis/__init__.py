"""Stored runs in, typed results out."""
