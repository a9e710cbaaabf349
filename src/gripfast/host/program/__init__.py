"""The running program itself: its configuration, directories, secrets, signals and standard streams."""
