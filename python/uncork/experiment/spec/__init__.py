"""The experiment file: what it may say, checked; pure."""
