"""Write documents as HTML, Markdown, terminal text, JSON and standalone drawings."""
