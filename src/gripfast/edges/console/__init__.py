"""The console: one page on loopback that shows what all sessions of this user do, and takes their answers."""
