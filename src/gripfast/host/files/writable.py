"""Whether a place may be written: in a root for writing, not denied, not protected."""

from __future__ import annotations

from gripfast.errors import SandboxViolation
from gripfast.host.files.beneath import ResolvedPath
from gripfast.host.files.closed_places import OWN_CODE
from gripfast.host.files.paths import WorkPath
from gripfast.host.files.protect import protected_by
from gripfast.host.files.scoped_paths import ScopedPaths
from gripfast.text.below import is_below
from gripfast.text.escape import escaped


def writable(paths: ScopedPaths, path: WorkPath) -> ResolvedPath:
    """The place a path leads to, if it may be written: in a root for writing, not denied, not protected."""
    _refuse_protected_name(paths, path)
    place = paths.allowed(path, "write")
    try:
        refuse_unwritable(paths, path, place)
    except BaseException:
        place.close()
        raise
    return place


def _refuse_protected_name(paths: ScopedPaths, path: WorkPath) -> None:
    reason = paths.places.protected(paths.requested(path), lifted=path.lifted)
    if reason is not None:
        raise _protected(path, reason)


def refuse_unwritable(paths: ScopedPaths, path: WorkPath, place: ResolvedPath, *, restoring: bool = False) -> None:
    """Raises SandboxViolation for a place that is read-only or protected. `restoring`: what was there is put back, so
    that a protection which began meanwhile must not keep it from that."""
    absolute = place.absolute
    if not place.root.writable and not any(is_below(absolute, one.real) for one in paths.scope.write):
        where = ", ".join(escaped(directory.given) for directory in paths.scope.write) or "nowhere"
        raise SandboxViolation(f"`{escaped(path.text)}` may be read but not written; writable: {where}")
    reason = None if restoring else protected_by(place, paths.places, paths.scope.protect, lifted=path.lifted)
    if reason is not None:
        raise _protected(path, reason)


class ProtectedName(SandboxViolation):
    """A place that is protected against writing."""


def _protected(path: WorkPath, reason: str) -> ProtectedName:
    if reason == OWN_CODE:
        return ProtectedName(
            f"`{escaped(path.text)}` is protected against writing: it is {reason}, so no tool may change it"
        )
    return ProtectedName(
        f"`{escaped(path.text)}` is protected against writing ({reason}): other programs run what it says. "
        f"Ask the user to change it, or to allow it with {_setting(reason)} in their configuration"
    )


def _setting(reason: str) -> str:
    """The line of configuration that lifts a protection."""
    name = reason.strip("`") if reason.startswith("`") else ".git"
    return f'unprotect = ["{name}"]'
