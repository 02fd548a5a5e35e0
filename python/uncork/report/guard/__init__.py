"""The report of a guard."""
