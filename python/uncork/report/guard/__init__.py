"""Reports on guards: document, terminal, Markdown, JUnit and Go benchmark format."""
