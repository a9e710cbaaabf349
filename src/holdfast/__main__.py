"""`python -m holdfast`."""

from holdfast.edges.cli import main

main()
