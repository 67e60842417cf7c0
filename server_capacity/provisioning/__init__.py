"""A process that holds what must be put back: it outlives the command, undoes its changes, and keeps a list on disk."""
