"""The guards around files: (name, file, the guard, what stands there without it, the tests that must notice)."""

from __future__ import annotations

BENEATH = "tests/host/test_beneath.py"
WRITING = "tests/host/test_writing.py"
ATTACKS = "tests/host/test_attacks.py"
PATHS = "tests/host/test_paths.py"
SCOPE = "tests/host/test_scope.py"
TEXT = "tests/host/test_text.py"
LINES = "tests/host/test_lines.py"

FILE_GUARDS: tuple[tuple[str, str, str, str, str], ...] = (
    # --- paths ---
    ("NUL in a path", "host/paths.py", 'if "\\0" in text:', "if False:", PATHS),
    ("over-long names", "host/paths.py", "if longest > MAX_NAME_BYTES:", "if False:", PATHS),
    (
        "lone surrogates",
        "host/paths.py",
        'data = text.encode("utf-8")',
        'data = text.encode("utf-8", "replace")',
        PATHS,
    ),
    ("names are escaped", "host/paths.py", "else _UNSHOWABLE.sub(_escape, text)", "else text", PATHS),
    # --- start ---
    ("home and / as a root", "host/scope.py", "if not wide and _is_wide(real):", "if False:", SCOPE),
    ("a root that is no directory", "host/scope.py", "if not os.path.isdir(real):", "if False:", SCOPE),
    ("an empty root", "host/scope.py", 'if not text or "\\0" in text:', "if False:", SCOPE),
    # --- confinement ---
    (
        "openat2 stays beneath",
        "host/beneath.py",
        "fd = _libc.syscall(_SYS_OPENAT2, root_fd, name, _HOW_AT, _HOW_SIZE)",
        "fd = os.open(path, DIRECTORY_FLAGS, dir_fd=root_fd)\n        if path == 'link':\n"
        "            raise OSError(errno.EXDEV, '')",
        f"{BENEATH} {ATTACKS}",
    ),
    (
        "a strategy is tried before it is trusted",
        "host/beneath.py",
        'if strategy == "openat2" and not _openat2_refuses():',
        "if False:",
        "tests/host/test_probe.py",
    ),
    (
        "the walk follows no link",
        "host/beneath.py",
        "_STEP_FLAGS = DIRECTORY_FLAGS | os.O_NOFOLLOW",
        "_STEP_FLAGS = DIRECTORY_FLAGS",
        f"{ATTACKS} -k walk",
    ),
    ("links are looked at", "host/beneath.py", "if not stat.S_ISLNK(found.st_mode):", "if True:", BENEATH),
    (
        "links lead into a root or nowhere",
        "host/beneath.py",
        'raise SandboxViolation(f"{what} outside the workspace ({named}); use a path inside it")',
        'found = (Root("/", "/", os.open("/", DIRECTORY_FLAGS), -1, writable=True), absolute[1:] + named[:0])',
        BENEATH,
    ),
    ("at most 40 links", "host/beneath.py", "if self._hops > MAX_HOPS:", "if self._hops > 45:", BENEATH),
    (
        "what was moved out is refused",
        "host/beneath.py",
        "    if below is None:\n        raise SandboxViolation(",
        "    if below is None:\n        below = ''\n    if False:\n        raise SandboxViolation(",
        "tests/host/test_probe.py",
    ),
    (
        "the last name is opened without following",
        "host/fs.py",
        "_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | ",
        "_READ_FLAGS = os.O_RDONLY | ",
        "tests/host/test_probe.py",
    ),
    (
        "a FIFO is not opened",
        "host/fs.py",
        "        _require_regular(path, place.stat)\n",
        "",
        "tests/host/test_probe.py",
    ),
    (
        "a FIFO never hangs",
        "host/fs.py",
        "os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY",
        "os.O_NOFOLLOW | os.O_NOCTTY",
        "tests/host/test_probe.py",
    ),
    (
        "what was swapped is looked at again",
        "host/fs.py",
        "            found = os.fstat(fd)\n            _require_regular(path, found)\n",
        "            found = os.fstat(fd)\n",
        "tests/host/test_probe.py",
    ),
    (
        "kernel files",
        "host/fs.py",
        "if found.st_dev != place.root.device and is_kernel_view(fd):\n                raise NotFile",
        "if False:\n                raise NotFile",
        BENEATH,
    ),
    (
        "kernel directories",
        "host/fs.py",
        "if found.st_dev != place.root.device and is_kernel_view(fd):\n                os.close(fd)",
        "if False:\n                os.close(fd)",
        BENEATH,
    ),
    (
        "kernel links",
        "host/beneath.py",
        "if found.st_dev != self._root.device and is_kernel_view(self._fd):",
        "if False:",
        BENEATH,
    ),
    ("deny, as requested", "host/fs.py", "        self._refuse_denied(path, self._requested(path))\n", "", BENEATH),
    (
        "deny, as it really is",
        "host/fs.py",
        "            self._refuse_denied(path, place.absolute)\n",
        "            pass\n",
        BENEATH,
    ),
    ("deny closes what is below", "host/patterns.py", '(?:/.*)?", re.DOTALL', '", re.DOTALL', f"{SCOPE} {BENEATH}"),
    ("invisible code points", "host/patterns.py", '_INVISIBLE.sub("", path)', "path", f"{SCOPE} {WRITING}"),
    (
        "case",
        "host/patterns.py",
        "path = path.lower() if path.isascii()",
        "path = path if path.isascii()",
        f"{SCOPE} {WRITING}",
    ),
    (
        "near names that are denied stay hidden",
        "host/fs.py",
        'for name in found if not self.is_denied(real := f"{above}/{name}")',
        'for name in found if (real := f"{above}/{name}")',
        BENEATH,
    ),
    # --- writing ---
    (
        "only roots for writing",
        "host/fs.py",
        "if not any(is_below(absolute, directory.real) for directory in self.scope.write):",
        "if False:",
        WRITING,
    ),
    (
        "protected names, as requested",
        "host/fs.py",
        "        self._refuse_protected_name(path)\n",
        "",
        "tests/host/test_probe.py",
    ),
    (
        "protected names, as they really are",
        "host/protect.py",
        '    if pattern is not None:\n        return f"`{pattern}`"\n',
        "",
        WRITING,
    ),
    (
        "the shape of a repository",
        "host/protect.py",
        "if _is_repository(place.root.fd, directory, below):",
        "if False:",
        WRITING,
    ),
    ("a shape that would be completed", "host/protect.py", "return new == folded(name) or ", "return ", WRITING),
    ("the gitdir of a .git file", "host/protect.py", "if _is_below_gitdir(place, directory):", "if False:", WRITING),
    (
        "not read",
        "host/guard.py",
        "        if seen is None:\n            raise NotRead",
        "        if seen is None:\n            return\n            raise NotRead",
        WRITING,
    ),
    ("changed since it was read", "host/guard.py", "if not seen.still(identity, digest):", "if False:", WRITING),
    (
        "young files are read whole again",
        "host/guard.py",
        "_SETTLED_NS = 50_000_000",
        "_SETTLED_NS = -1",
        LINES,
    ),
    (
        "the lock",
        "host/atomic.py",
        "            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        "            return None\n",
        f"{WRITING} {ATTACKS} -k 'lock or lose'",
    ),
    (
        "unchanged under the lock",
        "host/fs.py",
        "            if not _unchanged(made.fd, place.name, old):\n                return False\n",
        "",
        f"{WRITING} {ATTACKS} -k 'changes or lose or vanishes'",
    ),
    (
        "a new file never replaces",
        "host/fs.py",
        "(fresh.publish_new if old is None else fresh.publish_over)",
        "(fresh.publish_over)",
        "tests/host/test_probe.py",
    ),
    (
        "nothing is left of a temporary file",
        "host/atomic.py",
        '        """Nothing is left of it unless it was published."""\n        self._remove_name()\n',
        "",
        WRITING,
    ),
    (
        "made directories are taken away",
        "host/atomic.py",
        "                os.rmdir(name, dir_fd=above)\n",
        "                pass\n",
        WRITING,
    ),
    (
        "a sweep leaves the busy alone",
        "host/atomic.py",
        "        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)\n    except OSError:\n        return False\n",
        "    except OSError:\n        return False\n",
        WRITING,
    ),
    ("mode bits", "host/atomic.py", "    os.fchmod(fd, mode)\n", "", WRITING),
    (
        "written beside, not in place",
        "host/fs.py",
        "            fresh.fill(after, None if old is None else old.fd)\n",
        "            if old is not None:\n                with open(place.absolute, 'wb') as target:\n"
        "                    target.write(after)\n                return True\n            fresh.fill(after, None)\n",
        f"{WRITING} {ATTACKS}",
    ),
    # --- text ---
    (
        "bytes that don't round-trip",
        "host/text.py",
        "if encoding is not None and _round_trips(data, encoding):",
        "if encoding is not None and _decodes(data, encoding):",
        TEXT,
    ),
    (
        "undecodable files are not edited",
        "host/text.py",
        "    raise _undecodable(data, encoding, path)\n",
        "    return Text(Form(), data.decode('utf-8', 'replace').encode())\n",
        f"{TEXT} {WRITING}",
    ),
    ("NUL means binary", "host/text.py", "    if 0 in head:\n        return True\n", "", TEXT),
    ("a long line is kept in part", "host/lines.py", "            line = line[:KEPT]\n", "", LINES),
    (
        "the reader of a PDF leaves with its server",
        "host/pdf_child.py",
        "    while os.getppid() == parent:\n",
        "    while True:\n",
        "tests/builtin/test_read.py -k server_is_killed",
    ),
    (
        "no code beside the program reads a PDF",
        "host/pdf.py",
        "if os.path.isabs(place) and os.path.basename(place) in _INSTALLED",
        "if place",
        "tests/builtin/test_read.py -k no_code_beside",
    ),
    # --- what was seen before ---
    (
        "what is known by its content is judged by that",
        "host/guard.py",
        "        if digest is None or self.digest is None:\n            return identity == self.identity\n",
        "        if identity == self.identity:\n            return True\n",
        f"{WRITING} -k mapping",
    ),
    (
        "times in whole seconds settle later",
        "host/guard.py",
        "_SETTLED_NS if found.st_ctime_ns % _FINE_NS else _COARSE_NS",
        "_SETTLED_NS",
        f"{WRITING} -k whole_seconds",
    ),
    (
        "a file just written is read whole again",
        "host/guard.py",
        "seen is not None and seen.settled and seen.identity == Identity.of(found) else None",
        "seen is not None and seen.identity == Identity.of(found) else None",
        LINES,
    ),
    (
        "a changed file is read whole again",
        "host/guard.py",
        "seen.settled and seen.identity == Identity.of(found) else None",
        "seen.settled and seen.identity.inode == found.st_ino else None",
        LINES,
    ),
)
