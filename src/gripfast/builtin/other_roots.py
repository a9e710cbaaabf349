"""A note for workspaces of several directories: which of them an answer is not about."""

from __future__ import annotations

from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.paths import WorkPath
from gripfast.text.escape import escaped

_MOST = 5


def other_roots(fs: ScopedFs, path: WorkPath) -> list[str]:
    """What to call for the other directories of a workspace, if a path means the first as a whole."""
    others = fs.roots[1:]
    if not others or fs.show(path) != ".":
        return []
    named = " or ".join(f'path="{escaped(root)}"' for root in others[:_MOST])
    more = f" and {len(others) - _MOST} more" if len(others) > _MOST else ""
    return [f"only {escaped(fs.roots[0])} was searched; for the rest of the workspace: {named}{more}"]
