"""Stored runs in, documents out."""
