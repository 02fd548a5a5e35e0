"""Load generation. The Rust core sends and times the operations; this package builds plans for it."""
