"""Results of other tools: one file a tool, each from the text that it wrote to figures. Pure."""
