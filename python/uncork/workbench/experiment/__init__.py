"""Carries out experiments and cases."""
