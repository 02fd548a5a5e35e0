"""Read logs in tasks that other processes carry out, and join what they gathered."""
