"""Rules about types of columns and keys. Pure."""
