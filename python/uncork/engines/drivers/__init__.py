"""Engines that uncork reaches through their Python drivers, in client processes."""
