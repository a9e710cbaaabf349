"""`python -m holdfast`."""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # the directory it was started in, which may be a hostile workspace: nothing is imported from it

from holdfast.edges.cli import main

main()
