"""Rules about indexes: missing, unusable, redundant ones. Pure."""
