"""Engines that are reached through their Python drivers, each by a client process."""
