"""Pages of many runs: the table to read first, figures, and the whole of a report."""
