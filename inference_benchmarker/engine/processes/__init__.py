"""The processes that a command starts: their environment, their logs, their folders, interrupts, leftovers."""
