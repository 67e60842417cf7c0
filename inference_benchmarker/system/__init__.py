"""The host beneath: files, processes, timers, memory, and files that come with the packages."""
