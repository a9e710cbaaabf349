"""`python -m gripfast`."""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # the directory it was started in, which may be a hostile workspace: nothing is imported from it

from gripfast.edges.entry import run

run()
