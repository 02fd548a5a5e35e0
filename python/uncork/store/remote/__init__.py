"""A store of runs at an address, mirrored by a local folder."""
