"""Whether opening a file could wait for a network."""

from __future__ import annotations

from holdfast.host.mounts import all_local

TABLE = """\
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
    assert not all_local(["/home/me"], "")
    assert not all_local([], TABLE)
