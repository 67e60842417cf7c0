"""JSON and types: read within bounds, checked against what is declared, with a digest."""
