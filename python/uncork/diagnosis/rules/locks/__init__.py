"""Rules about sessions that wait for each other. Pure."""
