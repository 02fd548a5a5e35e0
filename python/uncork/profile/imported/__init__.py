"""Results of other tools. Each module parses the output of one tool into metrics. Pure."""
