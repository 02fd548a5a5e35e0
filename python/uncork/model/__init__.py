"""The words that every part shares. No input or output; the standard library alone."""
