"""Find the bottleneck, or what to change on a server, from what was seen of it, and name a remedy. Pure."""
