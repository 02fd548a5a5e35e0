"""What a watched server showed."""
