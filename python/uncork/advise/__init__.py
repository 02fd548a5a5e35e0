"""Evidence in, findings out: which resource gave out, and what would raise it. Pure."""
