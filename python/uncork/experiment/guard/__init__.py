"""Build one experiment from the two sides of a guard, and the evidence for its gates."""
