"""What stored logs show."""
