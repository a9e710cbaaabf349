"""What the kernel offers beyond the standard library, one facility a file: Landlock, openat2, prctl, mounts."""
