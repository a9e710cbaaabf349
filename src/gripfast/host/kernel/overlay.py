"""A program that runs another program with overlays over some directories, so that their real files don't change.

It runs alone (`python -I -S overlay.py SPEC PROGRAM ...`) and imports nothing of ours. In its own mount namespace
(mount_namespaces(7)) it mounts an overlay over each directory (https://docs.kernel.org/filesystems/overlayfs.html),
reopens the descriptors that PROGRAM inherits, so that they lead to the overlays, and executes PROGRAM. It can also
mount a symbolic link over a file, which PROGRAM can't remove. SPEC is a descriptor to read rows from: `overlay`,
directory, upper, work; `open`, descriptor, path; `links`, a directory to prepare links in; `link`, path, device,
inode, target. Each field ends with NUL, each row with two newlines.
"""

from __future__ import annotations

import ctypes
import os
import sys

TYPE_CHECKING = False  # as in `typing`, whose import would take half the start-up time
if TYPE_CHECKING:
    from collections.abc import Sequence

_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT, _MS_BIND = 1, 2, 4, 32, 4096
_MS_REC, _MS_PRIVATE, _MNT_DETACH = 0x4000, 1 << 18, 2
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW if sys.platform == "linux" else os.O_RDONLY
_PLACE = os.O_PATH | os.O_NOFOLLOW if sys.platform == "linux" else os.O_RDONLY


def main(arguments: Sequence[str]) -> None:
    spec, *program = arguments
    with open(int(spec), "rb") as file:
        rows = [row.split(b"\0")[:-1] for row in file.read().split(b"\n\n")[:-1]]
    try:
        _own_mounts()
        for row in rows:
            if row[0] == b"open":
                _require_same(int(row[1]), row[2])
        for row in rows:
            if row[0] == b"overlay":
                _lay_over(*row[1:])
        for row in rows:
            if row[0] == b"open":
                _open_again(int(row[1]), row[2])
        for row in rows:
            if row[0] == b"links":
                _lay_links(row[1], [row for row in rows if row[0] == b"link"])
    except OSError as fault:
        os.write(2, f"{fault.filename or 'overlay'}: {fault.strerror}\n".encode(errors="replace"))
        os._exit(1)
    os.execv(program[0], program)


def _own_mounts() -> None:
    """Enters a private mount namespace. Tries without a user namespace first, which works for root and keeps all
    user ids; see user_namespaces(7)."""
    user, group = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS) != 0:
        _checked(libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS), "no namespaces for this user")
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    _checked(libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None), "/")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _lay_over(directory: bytes, upper: bytes, work: bytes) -> None:
    """Mounts an overlay over a directory. Paths are given as descriptors, so that no name needs escaping; `userxattr`
    is what an unprivileged user needs."""
    places = [os.open(place, _DIRECTORY) for place in (directory, upper, work)]
    lower, above, beside = (f"/proc/self/fd/{fd}" for fd in places)
    options = f"lowerdir={lower},upperdir={above},workdir={beside},userxattr"
    libc = ctypes.CDLL(None, use_errno=True)
    flags = _MS_NOSUID | _MS_NODEV
    done = libc.mount(b"overlay", lower.encode(), b"overlay", flags, options.encode())
    _checked(done, f"an overlay over {os.fsdecode(directory)}")
    for fd in places:
        os.close(fd)


def _lay_links(folder: bytes, rows: Sequence[Sequence[bytes]]) -> None:
    """From a read-only file system of their own: a mount has the flags of what it was made from, and bubblewrap
    could not set them later, since it would follow the link."""
    libc = ctypes.CDLL(None, use_errno=True)
    flags = _MS_NOSUID | _MS_NODEV
    _checked(libc.mount(b"tmpfs", folder, b"tmpfs", flags, None), "links")
    for number, row in enumerate(rows):
        os.symlink(row[4], b"%b/%d" % (folder, number))
    _checked(libc.mount(None, folder, None, flags | _MS_REMOUNT | _MS_BIND | _MS_RDONLY, None), "links")
    for number, (_, path, device, inode, _) in enumerate(rows):
        link, place = os.open(b"%b/%d" % (folder, number), _PLACE), os.open(path, _PLACE)
        found = os.fstat(place)
        if (found.st_dev, found.st_ino) != (int(device), int(inode)) or os.readlink(_name(place)) != path:
            raise OSError(116, "it was moved just now", os.fsdecode(path))
        _checked(libc.mount(_name(link), _name(place), None, _MS_BIND, None), os.fsdecode(path))
        os.close(link)
        os.close(place)
    _checked(libc.umount2(folder, _MNT_DETACH), "links")


def _name(fd: int) -> bytes:
    return b"/proc/self/fd/%d" % fd


def _require_same(number: int, path: bytes) -> None:
    held, found = os.fstat(number), os.lstat(path)
    if (held.st_dev, held.st_ino) != (found.st_dev, found.st_ino):
        raise OSError(116, "it was moved just now", os.fsdecode(path))


def _open_again(number: int, path: bytes) -> None:
    fd = os.open(path, _PLACE)
    if os.readlink(b"/proc/self/fd/%d" % fd) != path:
        raise OSError(116, "it was moved just now", os.fsdecode(path))
    os.dup2(fd, number, inheritable=True)
    os.close(fd)


def _checked(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), what)


if __name__ == "__main__":
    main(sys.argv[1:])
