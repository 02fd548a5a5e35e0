"""Services as they run: how they were started, and how their answers differ."""
