"""Rules about what clients do: loops, connections, forgotten transactions. Pure."""
