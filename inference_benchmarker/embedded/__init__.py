"""The parts of the embedded endpoint: its queueing model, its HTTP, its dialects and its log."""
