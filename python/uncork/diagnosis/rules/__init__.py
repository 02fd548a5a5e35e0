"""Rules: each looks for one class of fault, and says what it is, what it costs and how to cure it. Pure."""
