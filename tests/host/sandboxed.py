"""Commands in a real sandbox, one after the other in one session, beside a git that reads only a repository's own
settings. Use it with the fixture `own_state`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import pytest

from gripfast.host.files.scope import Scope
from gripfast.host.kernel.landlock import landlock_version
from gripfast.host.shell.ended import Ended
from gripfast.host.shell.quarantine import Quarantined
from gripfast.host.shell.sandbox import Sandbox, choose
from gripfast.host.shell.shells import Shells

QUIET_GIT = {
    **os.environ,
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}
WHO = "-c user.name=a -c user.email=b@c -c init.defaultBranch=main -c commit.gpgsign=false"
LEVELS = ("bwrap", "landlock")


def level(name: str) -> Sandbox:
    """The sandbox with this name; the test is skipped where it does not work."""
    found = Sandbox("landlock") if name == "landlock" and landlock_version() else choose("auto")
    if found.level != name:
        pytest.skip(f"{name} does not work here: {found.faults}")
    return found


def git(where: Path, script: str) -> str:
    """What a script of the user prints, outside any sandbox."""
    done = subprocess.run(["bash", "-ec", script], cwd=where, env=QUIET_GIT, check=True, capture_output=True)
    return done.stdout.decode()


def repository_at(place: Path) -> Path:
    """A repository with one commit."""
    place.mkdir()
    git(place, f"git {WHO} init -q; echo 1 > a; git add a; git {WHO} commit -qm one")
    return place


class Session:
    """Commands one after the other: what each printed, and how it ended. `before` is put before each command.
    `git_alone`: each is one that runs nothing but git."""

    def __init__(
        self,
        scope: Scope,
        sandbox: Sandbox | str = "bwrap",
        *,
        sockets: Sequence[str] = (),
        before: str = "",
        git_alone: bool = False,
    ) -> None:
        self.sandbox = level(sandbox) if isinstance(sandbox, str) else sandbox
        self.scope, self.sockets, self.before, self.git_alone = scope, sockets, before, git_alone
        self.ended: list[Ended] = []

    def run(self, *steps: str | Callable[[], object], must_succeed: bool = False) -> list[str]:
        """Runs the commands, and calls the functions between them; returns what each command printed."""
        texts: list[str] = []

        async def main() -> None:
            async with Shells(self.scope, sandbox=self.sandbox, sockets=self.sockets) as shells:
                for step in steps:
                    if not isinstance(step, str):
                        step()
                        continue
                    kept = bytearray()

                    async def feed(data: bytes, kept: bytearray = kept) -> None:
                        kept.extend(data)

                    line = f"{self.before}{step}"
                    self.ended.append(await shells.run(line, feed, timeout_ms=60_000, git_alone=self.git_alone))
                    texts.append(kept.decode(errors="replace"))
                    assert self.ended[-1].exit_code == 0 or not must_succeed, texts[-1]

        anyio.run(main)
        return texts

    @property
    def taken(self) -> list[Quarantined]:
        """What was taken out after the commands so far."""
        return [item for ended in self.ended for item in ended.quarantined]
