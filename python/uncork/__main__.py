"""`python -m uncork` is the command line."""

from uncork.cli.app import main

main()
