"""What the kernel offers beyond the standard library, a file for each facility: Landlock, openat2, prctl, mounts."""
