"""A store at an address, through a folder of this machine that mirrors it."""
