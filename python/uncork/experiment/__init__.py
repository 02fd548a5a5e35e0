"""From a question in a file to trials: spec → plan → runner."""
