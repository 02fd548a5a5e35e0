"""What is known about a database beyond its counters: statements, plans, the catalogue, findings."""
