"""The verbs on stored runs: list, name, keep and move them."""
