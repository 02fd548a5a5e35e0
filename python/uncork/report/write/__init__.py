"""From a document to a form: HTML, Markdown, text, JSON, sheets."""
