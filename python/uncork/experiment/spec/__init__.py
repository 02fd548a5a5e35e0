"""The experiment file: its keys, and the checks of its content. Pure."""
