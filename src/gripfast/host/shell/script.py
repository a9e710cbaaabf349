"""The text that a shell reads for a command: checked, wrapped and in a descriptor; and which shell reads it."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence

from gripfast.errors import Internal, InvalidArgument
from gripfast.host.program.programs import find_program
from gripfast.host.shell.broker import REPORT, SCRIPT

LONGEST_COMMAND = 1024 * 1024


def _wrapper(builtin: str, read: str) -> bytes:
    """The text bash runs: it reads the command, evaluates it, and tells at every kind of end where it was.

    All on one line, so that line numbers in error messages are the command's own. If the command sets a
    trap or runs `exec`, at most that report is lost; the directory then stays what it was.
    """
    tell = f'{{ {builtin}pwd -P && {builtin}printf "\\0"; }} >&{REPORT}'
    return (
        f"{read} exec {SCRIPT}<&-; trap '{{ {tell}; }} 2>/dev/null' EXIT; "
        f'eval "$_gripfast"; {{ _gripfast=$?; {tell}; set +x; }} 2>/dev/null; exit "$_gripfast"'
    ).encode()


BASH = _wrapper("builtin ", f"IFS= read -r -d '' _gripfast <&{SCRIPT};")
SH = _wrapper("", f"_gripfast=$(cat <&{SCRIPT});")


def checked(command: str) -> bytes:
    """The command as bash will read it. Raises if bash can't read it."""
    if not command.strip():
        raise InvalidArgument("`command` is empty; give a shell command")
    if "\0" in command:
        raise InvalidArgument(f"`command` has a NUL character at {command.index(chr(0))}; a shell can't take one")
    try:
        text = command.encode()
    except UnicodeEncodeError as fault:
        raise InvalidArgument(f"`command` has half a surrogate pair at {fault.start}") from None
    if len(text) > LONGEST_COMMAND:
        raise InvalidArgument(
            f"`command` has {len(text)} bytes, at most {LONGEST_COMMAND} can be run; write it to a file and run that"
        )
    return text


def find_shell(roots: Sequence[str]) -> str:
    shell = find_program("bash", roots) or find_program("sh", roots)
    if not shell:
        raise Internal("there is no bash and no sh on this machine")
    return shell


def script_file(text: bytes) -> int:
    """A descriptor from which the shell reads its command."""
    if sys.platform == "linux":
        script = os.memfd_create("command", os.MFD_CLOEXEC)
    else:
        script, path = tempfile.mkstemp()
        os.unlink(path)
    with open(script, "wb", closefd=False) as file:
        file.write(text)
    os.lseek(script, 0, os.SEEK_SET)
    return script
