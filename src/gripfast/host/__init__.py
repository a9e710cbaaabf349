"""The machine: the only room that touches disk, processes and the clock."""
