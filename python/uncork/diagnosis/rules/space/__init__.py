"""Rules about dead rows, bloat and vacuum. Pure."""
