"""Whether opening a file could wait for a network."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gripfast import Scope, open_session
from gripfast.host.kernel import mounts
from gripfast.host.kernel.mounts import Locality, all_local

TABLE = b"""\
20 1 254:0 / / rw,relatime - ext4 /dev/vda rw
21 20 0:5 / /proc rw - proc proc rw
30 20 0:40 / /mnt/far rw - nfs4 server:/x rw
31 20 0:41 / /data/my\\040project/far rw shared:1 - fuse.sshfs host:/ rw
32 20 0:42 / /data/near rw - tmpfs tmpfs rw
33 32 0:43 / /data/near/deep rw - xfs /dev/b rw
"""


def test_a_directory_on_a_local_disk_is_local() -> None:
    assert all_local(["/home/me"], TABLE)
    assert all_local(["/data/near", "/home/me"], TABLE)


def test_a_network_mount_is_not_nor_what_has_one_beneath() -> None:
    assert not all_local(["/mnt/far/project"], TABLE)
    assert not all_local(["/data/my project"], TABLE)
    assert not all_local(["/data"], TABLE)
    assert not all_local(["/home/me", "/mnt/far"], TABLE)


def test_a_name_that_only_begins_alike_is_another_place() -> None:
    assert all_local(["/mnt/farther"], TABLE)


def test_what_is_not_known_is_not_local() -> None:
    assert not all_local(["/home/me"], b"")
    assert not all_local([], TABLE)


ODD = [b"a\\x4", b"a\\N{x}", b"a\\777", b"a\\", b"\xff\xfe", "a\u2028\x85b".encode(), b"a\x0cb\x1c", b"\\134040"]


@pytest.mark.parametrize("name", ODD)
def test_a_mount_with_an_odd_name_elsewhere_changes_nothing(name: bytes) -> None:
    table = TABLE + b"40 20 0:50 / /media/" + name + b" rw - vfat /dev/c rw\n"
    assert all_local(["/home/me"], table)
    assert not all_local(["/media"], table)
    assert not all_local([os.fsdecode(b"/media/" + name.replace(b"\\134", b"\\"))], table)


@pytest.mark.parametrize("line", [b"40 20", b"no mount at all", b"\0\0\0"])
def test_a_table_that_can_not_be_read_means_not_local(line: bytes) -> None:
    assert not all_local(["/home/me"], TABLE + line + b"\n")


@pytest.mark.anyio
async def test_a_mount_with_an_odd_name_does_not_stop_a_read(tmp_path: Path) -> None:
    there = tmp_path / "odd\\x4 \\N{x}\n"
    there.mkdir()
    mounted = subprocess.run(["mount", "-t", "ramfs", "none", str(there)], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        (tmp_path / "root").mkdir()
        (tmp_path / "root" / "a.txt").write_text("one\n")
        async with open_session(Scope.workspace(tmp_path / "root")) as session:
            assert "one" in (await session.call("Read", {"file_path": "a.txt"})).text
    finally:
        subprocess.run(["umount", str(there)], check=True)


def test_what_is_mounted_later_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[None] = []
    table = mounts._table  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(mounts, "_table", lambda: looks.append(None) or table())
    place = Locality([str(tmp_path)])
    first = place.all_local
    assert place.all_local == first
    assert len(looks) == 1
    there = tmp_path / "far"
    there.mkdir()
    mounted = subprocess.run(["mount", "-t", "ramfs", "none", str(there)], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        monkeypatch.setattr(mounts, "_LOCAL", frozenset(mounts._LOCAL - {"ramfs"}))  # pyright: ignore[reportPrivateUsage]
        assert not place.all_local
    finally:
        subprocess.run(["umount", str(there)], check=True)
    assert place.all_local == first


def test_a_locality_leaves_no_descriptor(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    assert Locality([str(tmp_path)]).all_local in (True, False)
    assert set(os.listdir("/proc/self/fd")) <= set(before)  # what an earlier test left may be closed meanwhile
