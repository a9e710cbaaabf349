"""The broker: a small program beside the server that starts every command and ends everything a command started.

It runs by itself (`python -I -S broker.py ...`), has one thread, imports almost nothing, and plays three parts:

    server ── warden ── [bwrap] ── broker ── supervisor ── shell ── what the shell starts
                                        └─── supervisor ── ...

- The **warden** runs outside the sandbox. When the server or the broker is gone, for whatever reason, it ends
  everything below it and removes the session's temporary directory.
- The **broker** forks a supervisor for each request (small process, cheap fork). Inside bubblewrap it is PID 1.
- A **supervisor** belongs to one command. As a subreaper it inherits every orphan of that command, including those
  that called setsid or forked twice. So if it has no children left, nothing of the command is left.

Each command has its own line to the server: a socket on which the supervisor reports. End of file on it means
that nobody is waiting any more. Messages are fields joined by NUL bytes; descriptors travel beside them.
"""

from __future__ import annotations

import errno
import gc
import os
import select
import sys
import time

TYPE_CHECKING = False  # named as in `typing`, which would take half the start-up time to import
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable, Sequence
    from ctypes import CDLL
    from signal import Signals
    from socket import socket
    from typing import Any, TypeAlias

    _Step: TypeAlias = tuple[int, int, int, int]
else:  # the C modules below `signal` and `socket`, which would double the start-up time
    import _signal as signal
    from _socket import socket

LINUX = sys.platform == "linux"
# The server passes on what is switched off; see host/kernel/features.py, which can't be imported here.
_MAY_ADOPT = LINUX and "subreaper" not in os.environ.get("GRIPFAST_WITHOUT", "").split()
# On macOS each shell is started through sandbox-exec: the program and the profile, on lines of their own. The broker
# stays outside, since a confined process can't run `ps`, which belongs to root and is setuid there.
SEATBELT = "GRIPFAST_SEATBELT"
# How many files a command may open, where the server raised that limit for itself.
DESCRIPTORS = "GRIPFAST_DESCRIPTORS"
# The words of the program that looks once more when the server is gone, on lines of their own.
LAST_LOOK = "GRIPFAST_LAST_LOOK"
# The descriptors that it inherits: of the roots, to find them again. Commands must have none of them.
HELD = "GRIPFAST_HELD"
# Descriptors of the shell: where its command text is read, and where it reports its last directory.
SCRIPT, REPORT = 198, 199
CHUNK = 256 * 1024
PIPE_SIZE = 1024 * 1024
GRACE_SECONDS = 2.0
# At a session's end: clients wait two seconds for the server, and it has more to do.
LAST_GRACE_SECONDS = 0.5
SWEEP_SECONDS = 10.0
SETTLE_SECONDS = 0.05
_LOOKS = 20
_ROUNDS = 20  # of removing: each opens one more level of directories that are closed
_FIRST_LOOK_SECONDS, _LONGEST_LOOK_SECONDS = 0.01, 1.0
# A command goes before the server when memory is short.
OOM_SCORE = b"500"
NAMELESS = b"one that forks faster than it can be named"
_MAX_FDS = 6
_AF_INET, _SOCK_STREAM = 2, 1
_SCM_RIGHTS, _SOL_SOCKET = 1, 1 if LINUX else 0xFFFF
_PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _LANDLOCK_RESTRICT_SELF = 24, 36, 38, 446
_PR_SET_DUMPABLE, _PR_SET_SECCOMP = 4, 22
_SECCOMP_FILTER, _SECCOMP_ALLOW, _SECCOMP_ERRNO = 2, 0x7FFF0000, 0x00050000
_LOAD, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06  # steps of BPF
# Calls that change other processes of the same user, in this order: prlimit64, sched_setparam, sched_setscheduler,
# sched_setaffinity and sched_setattr, whose first argument is the process; setpriority and ioprio_set, which take a
# kind and a process. By machine: pairs of an architecture that it runs, as audit(7) numbers them, and its calls.
_X86_64 = (302, 142, 144, 203, 314, 141, 251)
_CALLS_ON_OTHERS = {
    "x86_64": (
        (0xC000003E, (*_X86_64, *(number | 1 << 30 for number in _X86_64))),
        (0x40000003, (340, 154, 156, 241, 351, 97, 289)),
    ),
    "aarch64": ((0xC00000B7, (261, 118, 119, 122, 274, 140, 30)), (0x40000028, (369, 154, 156, 241, 380, 97, 314))),
}
# For each, places of arguments and what they are if the call means the caller alone. The kinds that mean one process
# are PRIO_PROCESS, which is 0, and IOPRIO_WHO_PROCESS, which is 1.
_MEANS_CALLER = (*[((0, 0),)] * 5, ((0, 0), (1, 0)), ((0, 1), (1, 0)))
# chown, dac_override, fowner, fsetid: what a root user's command needs for files that belong to somebody else.
ROOT_KEEPS = (0, 1, 3, 4)


# ---- the warden ----


def warden(live: int, requests: int, landlock: int, temporary: str, inside: Sequence[str]) -> None:
    """Starts the broker, through the sandbox's program if there is one, and outlives it."""
    _ignore_terminal_signals()
    become_subreaper()
    broker = os.fork()
    if broker == 0:
        for fd in (live, *map(int, os.environ.get(HELD, "").split())):
            os.close(fd)
        _become_broker(requests, landlock, inside)
    os.close(requests)
    if landlock >= 0:
        os.close(landlock)
    word = _watch(live, broker)
    sweep()
    word = word or _next_word(live)
    if word != b"k":
        _look_once_more()
    if temporary and not word:
        _remove(temporary)


def _become_broker(requests: int, landlock: int, inside: Sequence[str]) -> None:
    try:
        if inside:
            os.execv(inside[0], list(inside))
        if landlock >= 0:
            _prefer_for_oom(OOM_SCORE)  # the ruleset won't let a supervisor do it
            drop_powers()
            restrict(landlock)
            _leave_others_alone()
        serve(requests)
    finally:
        os._exit(1)


def _look_once_more() -> None:
    """Starts a separate program that looks at what commands made before they ended: the server is gone, or soon will
    be."""
    words = os.environ.get(LAST_LOOK, "").split("\n")
    if words[0]:
        try:
            _wait_for(os.posix_spawn(words[0], words, os.environ, setsigdef=[signal.SIGINT, signal.SIGTERM]))
        except OSError:
            return


def _watch(live: int, broker: int) -> bytes:
    """Waits for the server's end, or the broker's. The server's last word: `k`, the temporary directory stays; `l`,
    it stays and somebody must look; none, it is gone."""
    alarm = _child_alarm()
    poll = select.poll()
    poll.register(live, select.POLLIN)
    poll.register(alarm, select.POLLIN)
    while True:
        ready = [fd for fd, _ in poll.poll()]
        if live in ready:
            return os.read(live, 1)
        os.read(alarm, 64)
        if broker in reap():
            return b""


def _next_word(live: int) -> bytes:
    return os.read(live, 1)


def _remove(directory: str) -> None:
    import shutil  # noqa: PLC0415 - once, at the end: its imports would double the start-up

    for _ in range(_ROUNDS):
        if os.path.lexists(directory):
            shutil.rmtree(directory, onerror=lambda _, path, __: _unlock(path, directory))


def _unlock(path: str, within: str) -> None:
    """Opens what could not be removed, and the directory it is in, so that the next round can remove it; nothing
    outside of `within`."""
    for place in {path, os.path.dirname(path)} if path != within else {within}:
        try:
            os.chmod(place, 0o700, follow_symlinks=False)
        except (OSError, NotImplementedError):
            continue


# ---- the broker ----


def serve_inside(requests: int, landlock: int, checks: int, listens: int) -> None:
    """The broker inside bubblewrap: serves once every place is what the server saw when it built the walls.
    `listens`: it opens a door on loopback, in the commands' own network, for the server to answer at."""
    _close_all_but(requests, landlock, checks)
    fault = _misplaced(checks)
    if fault:
        socket(fileno=requests).send(b"misplaced\0" + fault)
        return
    if landlock >= 0:
        restrict(landlock)
    _leave_others_alone()
    serve(requests, _opened_door() if listens else None)


def _opened_door() -> socket:
    listener = socket(_AF_INET, _SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    return listener


def _close_all_but(*wanted: int) -> None:
    """Closes the descriptors that mounts were made from: a command that had one could get round the mounts."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in wanted:
            try:
                os.close(int(name))
            except OSError:
                continue  # the one that listed them


def _misplaced(checks: int) -> bytes:
    """The first path that is not mounted as it must be: another file, writable, or no mount at all. Empty if all are
    right."""
    with open(checks, "rb") as file:
        fields = file.read().split(b"\0")[:-1]
    with open("/proc/self/mountinfo", "rb") as file:
        mounted = {_unescaped(line.split(b" ")[4]) for line in file}
    for start in range(0, len(fields), 4):
        path, kind, device, inode = fields[start : start + 4]
        if not (_is_as_seen(path, kind, device, inode) and path in mounted):
            return path
    return b""


def _is_as_seen(path: bytes, kind: bytes, device: bytes, inode: bytes) -> bool:
    """Whether a place is the file it was, and closed if it must be. A link is known by its target, in `device`."""
    if kind == b"link":
        return os.path.islink(path) and os.readlink(path) == device
    found = os.lstat(path)
    is_any = kind == b"hide" or device == b"-"
    is_same = is_any or (found.st_dev, found.st_ino) == (int(device), int(inode))
    return is_same and (kind != b"read" or bool(os.statvfs(path).f_flag & os.ST_RDONLY))


def _unescaped(name: bytes) -> bytes:
    """A path as the mount table writes it: a space is `\\040`, and so on."""
    head, *rest = name.split(b"\\")
    return head + b"".join(bytes([int(part[:3], 8)]) + part[3:] for part in rest)


def serve(requests: int, listener: socket | None = None) -> None:
    """Forks a supervisor for each request, until the server closes its end. `listener` goes to the server."""
    _ignore_terminal_signals()
    _restore_descriptor_limit()
    become_subreaper()
    _hide()
    door = socket(fileno=requests)
    alarm = _child_alarm()
    supervisors: dict[int, bytes] = {}
    poll = select.poll()
    poll.register(requests, select.POLLIN)
    poll.register(alarm, select.POLLIN)
    if listener is None:
        door.send(b"ready")
    else:
        number = listener.fileno().to_bytes(4, sys.byteorder)
        door.sendmsg([b"ready"], [(_SOL_SOCKET, _SCM_RIGHTS, number)])
        listener.close()
    while True:
        ready = [fd for fd, _ in poll.poll()]
        if alarm in ready:
            os.read(alarm, 64)
            _bury(supervisors)
        if requests in ready:
            fields, descriptors = _receive(door)
            if fields[0] == b"run":
                _fork_supervisor(door, alarm, supervisors, fields, descriptors)
            elif fields[0] == b"bury":
                _await_end(supervisors, fields[1])
                door.send(b"buried\0" + fields[1])
            else:
                return


def _restore_descriptor_limit() -> None:
    usual = os.environ.get(DESCRIPTORS)
    if usual:
        import resource  # noqa: PLC0415 - only for a server that raised it

        resource.setrlimit(resource.RLIMIT_NOFILE, (int(usual), resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def _receive(door: socket) -> tuple[list[bytes], list[int]]:
    try:
        data, ancillary, _, _ = door.recvmsg(PIPE_SIZE, 24 + 4 * _MAX_FDS)
    except OSError:
        return [b""], []
    descriptors: list[int] = []
    for level, kind, payload in ancillary:
        if (level, kind) == (_SOL_SOCKET, _SCM_RIGHTS):
            descriptors += memoryview(payload[: len(payload) // 4 * 4]).cast("i").tolist()
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return data.split(b"\0"), descriptors


def _fork_supervisor(
    door: socket, alarm: int, supervisors: dict[int, bytes], fields: list[bytes], descriptors: list[int]
) -> None:
    try:
        pid = os.fork()
    except OSError as error:
        socket(fileno=descriptors.pop(0)).send(b"failed\0" + os.strerror(error.errno or 0).encode())
        pid = -1
    if pid == 0:
        try:
            door.close()
            os.close(alarm)
            if not _MAY_ADOPT:
                os.setsid()
            _supervise(fields, descriptors)
        finally:
            os._exit(1)
    for descriptor in descriptors:
        os.close(descriptor)
    if pid > 0:
        supervisors[pid] = fields[1]


def _bury(supervisors: dict[int, bytes]) -> None:
    """Forgets supervisors that ended. If one was killed, its orphans come here, and are ended at once."""
    killed = False
    for pid, status in reap().items():
        if supervisors.pop(pid or 0, None) is not None and status != 0:
            killed = True
            _dead_leaders.add(pid or 0)
    if killed:
        _end_orphans(supervisors)


def _end_orphans(supervisors: dict[int, bytes]) -> None:
    sweep(set(supervisors))
    _dead_leaders.clear()
    living = {pid for pid, parent in processes() if parent == os.getpid()}
    for pid in set(supervisors) - living:
        del supervisors[pid]


def _await_end(supervisors: dict[int, bytes], name: bytes) -> None:
    """The server lost a supervisor: makes sure that it and all of its command are gone."""
    for pid in [pid for pid, known in supervisors.items() if known == name]:
        _signal_one(pid, signal.SIGKILL)
        _wait_for(pid)
        del supervisors[pid]
        _dead_leaders.add(pid)
    _end_orphans(supervisors)


def _wait_for(pid: int) -> None:
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        return


# ---- a supervisor ----


def _supervise(fields: list[bytes], descriptors: list[int]) -> None:
    """Runs one command: starts it, watches it, reports its end, and stays until nothing of it runs."""
    _, _, limit_ms, cap, stdin, directory, shell, wrapper, *environment = fields
    line, out, write_end, script, *more = descriptors
    source = more.pop(0) if stdin == b"pipe" else -1
    become_subreaper()
    speaker = socket(fileno=line)
    where_r, where_w = os.pipe()
    try:
        os.chdir(directory)
    except OSError as error:
        speaker.send(b"nodir\0" + os.strerror(error.errno or 0).encode())
        os._exit(0)
    try:
        usual = _prefer_for_oom(OOM_SCORE)
        if stdin == b"tty":
            child = _spawn_on_terminal(shell, wrapper, environment, write_end, where_w, script)
        else:
            child = _spawn(shell, wrapper, environment, source, write_end, where_w, script)
        _prefer_for_oom(usual)
    except OSError as error:
        speaker.send(b"failed\0" + os.strerror(error.errno or 0).encode())
        os._exit(0)
    os.chdir("/")
    for descriptor in (write_end, where_w, script, *([source] if source >= 0 else [])):
        os.close(descriptor)
    os.set_blocking(where_r, False)
    limit = int(limit_ms) / 1000 if int(limit_ms) else None
    sink = more[0] if more else None
    Supervisor(speaker, out, where_r, child, limit=limit, spool=sink, cap=int(cap)).watch()
    os._exit(0)


def _prefer_for_oom(score: bytes) -> bytes:
    """Sets how likely the kernel is to end this process and its children when memory is short. Returns the old
    value."""
    _hide(1)  # the files of a hidden process belong to root
    try:
        with open("/proc/self/oom_score_adj", "r+b", buffering=0) as file:
            before = file.read(16).strip()
            file.seek(0)
            file.write(score)
            return before
    except OSError:
        return b"0"
    finally:
        _hide()


_SIGNALS = [s for s in range(1, 65 if LINUX else 32) if s not in (signal.SIGKILL, signal.SIGSTOP, 32, 33)]


def _spawn(
    shell: bytes, wrapper: bytes, environment: list[bytes], source: int, out: int, where: int, script: int
) -> int:
    pairs = (entry.split(b"=", 1) for entry in environment)
    apart: dict[str, Any] = {"setsid": True} if _MAY_ADOPT else {"setpgroup": 0}
    program, words = _confined(shell, [b"bash", b"-c", wrapper, b"bash"])
    nothing = (os.POSIX_SPAWN_OPEN, 0, b"/dev/null", os.O_RDONLY, 0)
    return os.posix_spawn(
        program,
        words,
        {pair[0]: pair[1] for pair in pairs},
        file_actions=[
            (os.POSIX_SPAWN_DUP2, source, 0) if source >= 0 else nothing,
            (os.POSIX_SPAWN_DUP2, out, 1),
            (os.POSIX_SPAWN_DUP2, out, 2),
            (os.POSIX_SPAWN_DUP2, where, REPORT),
            (os.POSIX_SPAWN_DUP2, script, SCRIPT),
        ],
        setsigmask=[],
        setsigdef=_SIGNALS,
        **apart,
    )


def _spawn_on_terminal(
    shell: bytes, wrapper: bytes, environment: list[bytes], terminal: int, where: int, script: int
) -> int:
    """Starts the shell on a terminal: the supervisor leads its session, so that nothing leaves it unseen where
    orphans are not adopted; the shell leads the group that reads. See credentials(7), posix_spawn can't do it."""
    import fcntl  # noqa: PLC0415 - few commands need a terminal
    import termios  # noqa: PLC0415

    if _MAY_ADOPT:
        os.setsid()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    pairs = [entry.split(b"=", 1) for entry in environment]
    program, words = _confined(shell, [b"bash", b"-c", wrapper, b"bash"])
    child = os.fork()
    if child:
        return child
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        os.tcsetpgrp(terminal, os.getpid())
        signal.set_wakeup_fd(-1)
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        for descriptor, number in ((where, REPORT), (script, SCRIPT), (terminal, 0), (terminal, 1), (terminal, 2)):
            os.dup2(descriptor, number)
        os.execve(program, words, {pair[0]: pair[1] for pair in pairs})
    finally:
        os._exit(127)


def _confined(program: bytes, words: list[bytes]) -> tuple[bytes, list[bytes]]:
    confiner, _, profile = os.environb.get(SEATBELT.encode(), b"").partition(b"\n")
    return (confiner, [confiner, b"-p", profile, program, *words[1:]]) if confiner else (program, words)


class Supervisor:
    """Watches one command: the end of its shell, its time limit, and messages from the server."""

    def __init__(
        self,
        line: socket,
        out: int,
        where: int,
        shell: int,
        *,
        limit: float | None,
        spool: int | None,
        cap: int,
    ) -> None:
        self.line, self.out, self.where, self.shell = line, out, where, shell
        self.deadline = None if limit is None else time.monotonic() + limit
        self.kill_at: float | None = None
        self.spool, self.room = spool, cap
        self.reason = b"exited"
        self.status: int | None = None
        self.reported = False
        self.alone = False  # nothing of the command is left
        self.look_at, self.pause = 0.0, _FIRST_LOOK_SECONDS
        self.alarm = _child_alarm()
        self.poll = select.poll()
        self.poll.register(line.fileno(), select.POLLIN)
        self.poll.register(self.alarm, select.POLLIN)
        if spool is not None:
            self.poll.register(out, select.POLLIN)

    def watch(self) -> None:
        self._reap()
        self._tick()
        while not (self.alone and self.reported):
            ready = [fd for fd, _ in self.poll.poll(self._patience())]
            if self.out in ready:
                self._drain(CHUNK)
            if self.alarm in ready:
                os.read(self.alarm, 64)
            if self.alarm in ready or not _MAY_ADOPT:
                self._reap()
            if self.line.fileno() in ready and not self._hear():
                sweep()
                return
            self._tick()

    def _patience(self) -> float | None:
        look_at = None if _MAY_ADOPT or self.status is None else self.look_at
        moments = [moment for moment in (self.deadline, self.kill_at, look_at) if moment is not None]
        return max(0.0, min(moments) - time.monotonic()) * 1000 + 1 if moments else None

    def _hear(self) -> bool:
        """Reads a message from the server. False if the server has hung up."""
        try:
            word = self.line.recv(64)
        except OSError:
            return False
        if word == b"stop":
            self._begin_stop(b"stopped")
        elif word == b"end":
            self._begin_stop(b"stopped", LAST_GRACE_SECONDS)
        elif word == b"interrupt":
            for pid in descendants():
                _signal_one(pid, signal.SIGINT)
        elif word == b"drain":
            self.poll.register(self.out, select.POLLIN)
        return bool(word)

    def _tick(self) -> None:
        now = time.monotonic()
        if self.deadline is not None and now >= self.deadline:
            self._begin_stop(b"timeout")
        if self.kill_at is not None and (self.alone or now >= self.kill_at):
            self.kill_at = None
            survivors = sweep()
            self._reap()
            self._report(survivors)
            self.alone = True
        elif self.kill_at is None and self.status is not None and not self.reported:
            self._report(self._left_running())

    def _begin_stop(self, reason: bytes, grace: float = GRACE_SECONDS) -> None:
        self.deadline = None
        if self.kill_at is None:
            self.reason = self.reason if self.reported else reason
            self.kill_at = time.monotonic() + grace
            for pid in descendants():
                _signal_one(pid, signal.SIGTERM)
                _signal_one(pid, signal.SIGCONT)

    def _reap(self) -> None:
        ended = reap()
        self.status = ended.get(self.shell, self.status)
        if self.status is not None:
            self.deadline = None
        self.alone = None in ended and (_MAY_ADOPT or self._session_is_empty())

    def _session_is_empty(self) -> bool:
        """Whether the session has no orphans left, where they are not adopted. It looks less and less often, because
        a look may start `ps`."""
        if self.alone or time.monotonic() < self.look_at:
            return self.alone
        empty = _is_alone()
        self.look_at, self.pause = time.monotonic() + self.pause, min(self.pause * 2, _LONGEST_LOOK_SECONDS)
        return empty

    def _left_running(self) -> list[bytes]:
        """What is still running a moment after the shell has ended."""
        until = time.monotonic() + SETTLE_SECONDS
        while not self.alone and time.monotonic() < until:
            time.sleep(0.005)
            self._reap()
        if self.alone:
            return []
        return [describe(pid) for pid in descendants()] or [NAMELESS]

    def _report(self, running: list[bytes]) -> None:
        if self.reported:
            return
        self.reported = True
        if self.spool is not None:
            self._drain(PIPE_SIZE)
        where = _last_word(self.where)
        status = b"" if self.status is None else b"%d" % self.status
        head = b"\0".join((b"ended", self.reason, status, where, b"%d" % len(running)))
        try:
            self.line.send(b"\0".join((head, *running[:8])))
        except OSError:
            return

    def _drain(self, limit: int) -> None:
        """Reads what is in the pipe. It goes into the spool while there is room; the rest is dropped."""
        taken = 0
        while taken < limit:
            try:
                data = os.read(self.out, min(CHUNK, limit - taken))
            except BlockingIOError:
                return
            except OSError:  # EIO: nobody has the terminal open any more
                data = b""
            if not data:
                self._forget_output()
                return
            taken += len(data)
            if self.spool is not None and self.room > 0:
                self.room -= _write_all(self.spool, data[: self.room])

    def _forget_output(self) -> None:
        try:
            self.poll.unregister(self.out)
        except KeyError:
            return


def _write_all(descriptor: int, data: bytes) -> int:
    done = 0
    try:
        while done < len(data):
            done += os.write(descriptor, data[done:])
    except OSError:
        return len(data)  # on a full disk the output is lost, but the command goes on
    return done


def _last_word(where: int) -> bytes:
    """The last directory the shell reported; anything else that was written there is ignored."""
    try:
        data = os.read(where, 64 * 1024)
    except BlockingIOError:
        return b""
    words = data.split(b"\0")
    place = words[-2].removesuffix(b"\n") if len(words) > 1 else b""
    # Any command can write here. What `pwd -P` would not say, such as a path through a link, is not believed.
    return place if place[:1] == b"/" and os.path.realpath(place) == place else b""


# ---- processes ----


def become_subreaper() -> None:
    if _MAY_ADOPT:
        _libc().prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _hide(dumpable: int = 0) -> None:
    """Keeps commands from tracing this process and its supervisors, from its memory and its descriptors (prctl(2)):
    they could make it run another line than was approved. A program that is started is not hidden."""
    if LINUX:
        _libc().prctl(_PR_SET_DUMPABLE, dumpable, 0, 0, 0)


def drop_powers() -> None:
    """Takes away the powers with which a root user's commands could get round a ruleset."""
    for capability in range(64) if os.geteuid() == 0 else ():
        if capability not in ROOT_KEEPS:
            _libc().prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


def restrict(ruleset: int) -> None:
    """Puts this process, and everything it starts, under a Landlock ruleset for good."""
    libc = _libc()
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.syscall(_LANDLOCK_RESTRICT_SELF, ruleset, 0):
        raise OSError("Landlock refused the ruleset")
    os.close(ruleset)


def _leave_others_alone() -> None:
    """From now on prlimit(2) works for the caller alone; where other processes can be seen, so do nice values,
    scheduling and processors. With them a command could take descriptors, files or processor time from the server and
    from whoever cleans up after it: any process of the same user may. Where the kernel has no seccomp(2), nothing
    changes."""
    import ctypes  # noqa: PLC0415 - only where there is something to call
    import struct  # noqa: PLC0415

    sees_others = os.getpid() != 1
    steps = [
        step
        for arch, numbers in _CALLS_ON_OTHERS.get(os.uname().machine, ())
        for step in _refusing_others(arch, numbers, sees_others=sees_others)
    ]
    program = b"".join(struct.pack("HBBI", *step) for step in (*steps, (_RETURN, 0, 0, _SECCOMP_ALLOW)))
    code = ctypes.create_string_buffer(program, len(program))
    whole = struct.pack("HP", len(program) // 8, ctypes.addressof(code))
    _libc().prctl(_PR_SET_SECCOMP, _SECCOMP_FILTER, whole, 0, 0)


def _refusing_others(arch: int, numbers: Sequence[int], *, sees_others: bool) -> list[_Step]:
    """Steps of a BPF program that refuse system calls unless they mean the caller. They read fields of `struct
    seccomp_data` by their offsets, and jump over as many steps as the two numbers say: if equal, if not."""
    steps: list[_Step] = [(_LOAD, 0, 0, 0)]  # the number of the call
    for index, number in enumerate(numbers):
        kind = index % len(_MEANS_CALLER)
        if kind == 0 or sees_others:
            checks = [step for place, wanted in _MEANS_CALLER[kind] for step in _requiring(place, wanted)]
            steps += [(_IF_EQUAL, 0, len(checks) + 1, number), *checks, (_RETURN, 0, 0, _SECCOMP_ALLOW)]
    return [(_LOAD, 0, 0, 4), (_IF_EQUAL, 0, len(steps), arch), *steps]


def _requiring(place: int, wanted: int) -> list[_Step]:
    """Steps that refuse a call whose argument at this place, of 32 bits, is another."""
    return [
        (_LOAD, 0, 0, 16 + 8 * place + (0 if sys.byteorder == "little" else 4)),
        (_IF_EQUAL, 1, 0, wanted),
        (_RETURN, 0, 0, _SECCOMP_ERRNO | errno.EPERM),
    ]


def _libc() -> CDLL:
    """The C library. The broker loads it once, so that every supervisor has it when it is forked."""
    import ctypes  # noqa: PLC0415 - only where there is something to call

    global _loaded
    if _loaded is None:
        _loaded = ctypes.CDLL(None, use_errno=True)
    return _loaded


_loaded: CDLL | None = None


def reap() -> dict[int | None, int]:
    """The children that ended, with their wait status; the key None is there when no child is left."""
    ended: dict[int | None, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            ended[None] = 0
            return ended
        if pid == 0:
            return ended
        ended[pid] = status


def sweep(spare: Iterable[int] = ()) -> list[bytes]:
    """Ends every descendant except `spare` and what is below those: stop them all, kill them all, again, until
    none is left. Returns what could not be ended (a process of another user, one stuck in the kernel)."""
    spare = set(spare)
    until = time.monotonic() + SWEEP_SECONDS
    pause = 0.0005
    while True:
        if None in reap() and (_MAY_ADOPT or _is_alone(spare)):
            return []
        seen: set[int] = set()
        while fresh := [pid for pid in descendants(spare) if pid not in seen] or newest(seen, spare):
            before = len(seen)
            for pid in fresh:
                if _stop_if_ours(pid, {os.getpid(), *_dead_leaders, *seen}):
                    seen.add(pid)
            if len(seen) == before:
                break
        if not seen and spare:
            return []
        for pid in seen:
            _signal_one(pid, signal.SIGKILL)
        if time.monotonic() > until:
            return [describe(pid) for pid in descendants(spare)] or [NAMELESS]
        time.sleep(pause)
        pause = min(pause * 2, 0.05)


def newest(seen: set[int], spare: set[int]) -> list[int]:
    """A child among the processes made last. One that forks and ends faster than a list of all processes can be
    read is in no list; the kernel's last process number leads to it."""
    me = os.getpid()
    for _ in range(_LOOKS if LINUX else 0):
        with open("/proc/loadavg", "rb", buffering=0) as file:
            last = int(file.read(100).split()[-1])
        for pid in range(max(2, last - 4), last + 3):
            if pid in seen or pid in spare:
                continue
            state, parent = _state_and_parent(f"{pid}")
            if state not in b"ZX" and (parent == me or parent in seen):
                return [pid]
    return []


def descendants(spare: Iterable[int] = ()) -> list[int]:
    """Every living process below this one, parents first, except `spare` and what is below those."""
    below: dict[int, list[int]] = {}
    for pid, parent in processes():
        below.setdefault(_keeper(pid, parent), []).append(pid)
    found: list[int] = []
    layer = [os.getpid(), *_dead_leaders]
    while layer:
        layer = [child for pid in layer for child in below.get(pid, ()) if child not in spare]
        found += layer
    return found


def _is_alone(spare: Iterable[int] = ()) -> bool:
    """Whether several looks in a row find nobody: one that forks and ends during a look may be missed by it."""
    return not any(descendants(spare) for _ in range(3))


# Supervisors that were killed, where orphans are not adopted: their sessions may have members still.
_dead_leaders: set[int] = set()


def _keeper(pid: int, parent: int) -> int:
    """Who answers for a process: its parent; where orphans are not adopted, the leader of its session. A supervisor
    leads its command's session there, so that only a command that starts a session of its own gets away."""
    if _MAY_ADOPT:
        return parent
    try:
        leader = os.getsid(pid)
    except OSError:
        return parent
    return parent if leader == pid else leader


def processes() -> list[tuple[int, int]]:
    """(pid, parent) of every process that is not dead yet."""
    if not LINUX:
        return _processes_by_ps()
    found: list[tuple[int, int]] = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            state, parent = _state_and_parent(name)
            if state not in b"ZX":
                found.append((int(name), parent))
    return found


def _state_and_parent(pid: str) -> tuple[bytes, int]:
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            fields = file.read(1024).rpartition(b")")[2].split(None, 2)
    except OSError:
        return b"X", 0
    return (fields[0], int(fields[1])) if len(fields) > 1 else (b"X", 0)


def _processes_by_ps() -> list[tuple[int, int]]:
    read_end, write_end = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, write_end, 1)]
    ps = os.posix_spawn("/bin/ps", ["ps", "-axo", "pid=,ppid=,stat="], {}, file_actions=actions)
    os.close(write_end)
    with open(read_end, "rb") as file:
        rows = [line.split() for line in file]
    os.waitpid(ps, 0)
    return [(int(pid), int(parent)) for pid, parent, state in rows if int(pid) != ps and state[:1] != b"Z"]


def describe(pid: int) -> bytes:
    """`pid command line`, short."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb", buffering=0) as file:
            words = file.read(200).replace(b"\0", b" ").strip()
    except OSError:
        words = b""
    return b"%d %s" % (pid, words[:80])


def _signal_one(pid: int, number: Signals) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _stop_if_ours(pid: int, ours: set[int]) -> bool:
    """Stops a process, if it is still the one that was found: numbers are used again, and a stranger must not be
    hit. Once stopped it can't end by itself, so its number stays its own until it is killed."""
    handle = _handle(pid)
    try:
        if LINUX:
            state, parent = _state_and_parent(f"{pid}")
            if state in b"ZX" or _keeper(pid, parent) not in ours:
                return False
        if handle >= 0:
            signal.pidfd_send_signal(handle, signal.SIGSTOP)
        else:
            os.kill(pid, signal.SIGSTOP)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # another user's: it can't be ended, but what is below it can
    finally:
        if handle >= 0:
            os.close(handle)
    return True


def _handle(pid: int) -> int:
    """A descriptor that stands for this process even if its number is used again; -1 if the system has none."""
    try:
        return os.pidfd_open(pid) if LINUX else -1
    except (OSError, AttributeError):
        return -1


def _ignore_terminal_signals() -> None:
    """Ignores what a terminal or a careless `kill` sends: this process must stay to clean up."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT, signal.SIGTSTP):
        signal.signal(number, signal.SIG_IGN)


def _child_alarm() -> int:
    """A descriptor that is readable when a child has ended."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    signal.signal(signal.SIGCHLD, _heard)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    return read_end


def _heard(number: int, frame: object) -> None:
    """Does nothing: the wake-up descriptor reports the signal, but only if there is a handler."""


def main(arguments: Sequence[str]) -> None:
    gc.disable()  # there are no cycles here, and a collection would copy the memory that forks share
    part, *rest = arguments
    if part == "warden":
        live, requests, landlock, temporary, *inside = rest
        warden(int(live), int(requests), int(landlock), temporary, inside)
    elif part == "try":
        _try_restriction(int(rest[0]), rest[1:])
    else:
        serve_inside(*(int(number) for number in rest))


def _try_restriction(landlock: int, files: Sequence[str]) -> None:
    """For the probe: writes what it can under a ruleset. The one who asked looks at what was written."""
    drop_powers()
    restrict(landlock)
    for file in files:
        try:
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))
        except OSError:
            continue


if __name__ == "__main__":
    main(sys.argv[1:])
