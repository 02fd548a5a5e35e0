"""Plan an experiment: what to measure, in which order, for how long, and the expected precision. Pure."""
