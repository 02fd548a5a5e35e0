"""Rules about statements that change rows. Pure."""
