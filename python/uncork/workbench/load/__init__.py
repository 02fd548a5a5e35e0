"""Carries out loads and sweeps."""
