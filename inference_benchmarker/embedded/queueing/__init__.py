"""The queueing model of an inference server, in integer nanoseconds. Pure: instants come in as arguments."""
