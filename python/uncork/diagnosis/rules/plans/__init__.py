"""Rules about how statements are planned and executed. Pure."""
