"""Carries out guards, and keeps what they found."""
