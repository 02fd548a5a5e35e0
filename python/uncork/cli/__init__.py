"""The command line: parse, call the workbench, render, exit status. One file a group of verbs."""
