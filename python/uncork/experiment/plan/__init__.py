"""What is measured, in which order, for how long, and how precise that will be; pure."""
