"""Pages of many runs: the table to read first, figures, and the whole of a report.

``series`` puts the page of runs together, with ``forest`` where they are the two ``sides`` of a comparison or an `ab`.
"""
