"""The types that all rooms share. No input or output; only the standard library."""
